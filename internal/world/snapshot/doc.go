// Package snapshot keeps checkpoints of a whole workspace in a store outside of
// it, and puts back what somebody did between two of them, and nothing else.
//
// # What is kept
//
// Content of regular files, targets of symbolic links, folders (empty ones
// too), and the nine permission bits of files and folders. Not: times (a build
// must notice that a file was put back), owners, setuid, setgid and sticky bits
// (they stay as they are when only permissions change, and are never given),
// extended attributes, and that two names are hard links of one file. Left out
// are sockets, pipes, devices, everything named .git at any depth unless
// [Store.Whole] is set, and what [Store.Skip] names. Files above
// [Store.MaxFile], and files and folders that can't be read, are recorded
// without their content, so that a change of them is noticed and reported; what
// is not kept is never removed or overwritten.
//
// # What is put back
//
// A path is touched only if it differs between the two checkpoints of a [Span],
// if nobody changed it since (unless forced), and if its content is kept. It
// becomes what it was in the wanted checkpoint. A folder goes only when all in
// it goes too. Symbolic links are never followed: the workspace is accessed
// through [os.Root], folder by folder. What somebody else does to a path
// between two checkpoints of a span counts as part of that span.
//
// # The store
//
//	format            one line that names the version
//	lock              flock(2): exclusive to change the store, shared to read it
//	checkpoints/ID    a line "inspan-checkpoint-1 SHA256" and the JSON it is the digest of
//	packs/ID.pack     small objects of one checkpoint, one behind the other; then the index,
//	                  sorted: 32 bytes digest, 8 offset, 4 length for each; then 8 bytes count,
//	                  32 bytes SHA-256 of index and count, and "inspanP1"
//	objects/ab/abc..  an object of 1 MiB or more, cloned from the workspace where the file system can
//	cache             what files looked like when they were hashed; may be deleted at any time
//	journal           a restore that is under way
//	sent/sha256-..    of blobs that hold the workspace: manifests, and which objects are in packs
//	tmp/              what is being written; whoever holds the lock alone may delete it
//
// All numbers are little endian, or varints as in [encoding/binary]. An object
// is the content of a file, or a tree, and is named by its SHA-256. A tree is
// 'T', one byte that is 1 if the folder also holds what isn't listed, and the
// entries sorted by name: a byte for the kind, permissions, name, and
//
//	f  file: size, digest      d  folder: digest of its tree    l  link: target
//	F  the same and the time of modification (ns), in states in blobs
//	L  too large, u  unreadable file: size, time of modification (ns)
//	D  unreadable folder: nothing
//
// The journal is "inspan-journal-1\n", the SHA-256 of the rest, and the rest:
// the checkpoint before, a random word, which folders must be opened up for
// writing, and what becomes of each path, from what to what. The Nth path's
// temporary file is ".inspan-WORD-N" beside it.
//
// # States in blobs
//
// [Store.Send] puts the state of a workspace into blobs of a session, and
// [Store.Fetch] makes the workspace of them, say on another machine. A blob
// begins with "inspan-workspace-1\n". Behind that comes a pack after 16 random
// bytes, or a manifest: JSON with the digest of the tree and the packs that
// together hold all objects. An object of 1 MiB or more has a pack to itself. A
// state that follows another has its packs, but for those that are mostly waste,
// and one with what is new.
//
// # Crashes
//
// A checkpoint exists when its file in checkpoints/ does, which is renamed into
// place last. A restore first syncs its journal; from then on it only goes
// forward, and [Store.Recover] takes every path that is still what it was, or
// halfway, to its end. After a kill -9 at any moment nothing is lost or half
// done. After a power failure a checkpoint that was returned is still there; a
// file that the disk lost in the middle of a restore is reported, as a change
// by somebody else would be. A Fetch makes the workspace beside the old one, and
// renames it into place when it is whole.
package snapshot
