// Package snapshot stores checkpoints of a whole workspace outside of it, and undoes exactly the changes
// between two of them.
//
// Read in this order: snapshot.go (the types), take.go and scan.go (a checkpoint), tree.go, pack.go, vault.go and
// record.go (the store), diff.go and plan.go (what a restore would do), restore.go, journal.go and apply.go (doing it),
// undo.go (merging what changed since). send.go and fetch.go move a workspace to another machine.
//
// # What is kept
//
// Content of regular files, targets of symbolic links, folders (empty ones too), and the nine permission bits
// of files and folders. Not kept are times (a build must notice a restored file), owners, setuid, setgid and
// sticky bits (they are preserved when only permissions change, and never set), extended attributes, and hard
// links between names. Left out are sockets, pipes, devices, everything named .git at any depth unless
// [Store.Whole] is set, and paths that [Store.Skip] names. Files above [Store.MaxFile], and unreadable files
// and folders, are recorded without their content, so that their changes are noticed and reported. Content that
// is not kept is never removed or overwritten.
//
// # What is put back
//
// A path is touched only if it differs between the two checkpoints of a [Span], if it was not changed since
// (unless forced), and if its content is kept. It gets its state in the wanted checkpoint. A folder is removed
// only together with all its content. Symbolic links are never followed: the workspace is accessed through
// [os.Root], folder by folder. A change by another process between two checkpoints of a span counts as part of
// that span.
//
// # The store
//
//	format            one line that names the version
//	lock              flock(2): exclusive to change the store, shared to read it
//	checkpoints/ID    a line "inspan-checkpoint-1 SHA256" and the JSON with that digest
//	packs/ID.pack     small objects of one checkpoint, concatenated; then the index,
//	                  sorted: 32 bytes digest, 8 offset, 4 length for each; then 8 bytes count,
//	                  32 bytes SHA-256 of index and count, and "inspanP1"
//	objects/ab/abc..  an object of 1 MiB or more, cloned from the workspace if the file system can
//	cache             metadata of hashed files; may be deleted at any time
//	journal           a restore in progress
//	sent/sha256-..    of blobs that hold the workspace: manifests, and which objects are in packs
//	tmp/              files being written; the exclusive holder of the lock may delete it
//
// All numbers are little endian, or varints as in [encoding/binary]. An object is the content of a file, or a
// tree, and is named by its SHA-256. A tree is 'T', one byte that is 1 if the folder also has unlisted content,
// and the entries sorted by name: a byte for the kind, permissions, name, and
//
//	f  file: size, digest      d  folder: digest of its tree    l  link: target
//	F  the same and the time of modification (ns), in states in blobs
//	L  too large, u  unreadable file: size, time of modification (ns)
//	D  unreadable folder: nothing
//
// The journal is "inspan-journal-1\n", the SHA-256 of the rest, and the rest: the checkpoint before, a random
// word, the folders to be made writable, and the old and the new state of each path. The temporary file of the
// Nth path is ".inspan-WORD-N" next to it.
//
// # States in blobs
//
// [Store.Send] writes the state of a workspace to blobs of a session, and [Store.Fetch] recreates the workspace
// from them, for example on another machine. A blob begins with "inspan-workspace-1\n". After that comes a pack
// after 16 random bytes, or a manifest: JSON with the digest of the tree and the packs that together contain
// all objects. An object of 1 MiB or more has its own pack. A later state reuses the packs of the earlier one,
// except those that are mostly waste, and adds one with new objects.
//
// # Crashes
//
// A checkpoint exists when its file in checkpoints/ does, which is renamed into place last. A restore first
// syncs its journal; from then on it only goes forward, and [Store.Recover] completes every path that is still
// in its old state, or halfway. After a kill -9 at any moment nothing is lost or half done. After a power
// failure a returned checkpoint still exists. A file that the disk lost in the middle of a restore is reported
// like a change by another process. A Fetch creates the workspace next to the old one, and renames it into
// place when it is complete.
package snapshot
