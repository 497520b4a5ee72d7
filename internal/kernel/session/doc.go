// Package session stores sessions on disk: for each an append-only log of events, the blobs its events name,
// and the leases that say who may write.
//
// Read in this order: store.go and log.go (the two types), line.go and lines.go (a line, many lines), commit.go and
// lease.go (writing), read.go and tail.go (reading and waiting), blobs.go and specs.go (what is beside the log), then
// list.go with listed.go, index.go and recent.go (finding without reading everything). fsck.go and leftovers.go look for
// damage; disk.go is the file system, which tests make fail.
//
// # Layout
//
// A [Store] is a folder with one folder per session, mode 0700, files 0600:
//
//	20261121-131502-k3f9/
//	    log.jsonl       the events; the only state
//	    lock            locked during an append; says how much of the log is synced
//	    lease           locked while a process drives the session
//	    index.json      where to start reading; can always be deleted
//	    torn-*.bin      data that a crash left half written, set aside
//	    blobs/sha256-*  large data, named by content
//	list.index          what the list of sessions says; can always be deleted
//	specs/*.json        tool specs that logs refer to, named by their content
//
// # Line
//
// A line of the log is the output of [event.Encode], with a checksum in front, and a newline. Line n has the
// event with sequence number n.
//
//	{"crc":"5ad1b7e0","seq":1,"time":"...","session":"...","kind":"said","body":{...}}
//
// The checksum is CRC-32C (Castagnoli), eight lower-case hex digits, over the eight digits of the line before
// ("00000000" for the first) and the bytes from behind `"crc":"...",` up to the newline. So a line that was
// changed, moved, removed or inserted does not verify. Lines are written with one write(2) each, or one for a
// whole batch, to a file opened with O_APPEND.
//
// Large specs of tools are not in the line: it refers to files in the folder specs, and its kind says so
// ("switched+specs"). The checksum is over the line as it is on the disk. See
// docs/decisions/032-specs-are-kept-once.md.
//
// # What survives what
//
//	                                    SyncPower          SyncKill
//	kill -9, panic, out of memory       all acknowledged   all acknowledged
//	power loss, crash of the kernel     acknowledged and   what the kernel had
//	                                    event.Synced, and  written by itself
//	                                    all before those
//	disk full, I/O error                all acknowledged   all acknowledged
//	streamed text (event.Delta)         never stored       never stored
//
// Acknowledged means that Append returned without an error. In every case the log that is found again is an exact
// prefix of the appended events: a torn tail is cut before anything is written after it. Reading changes nothing
// and needs no write permission. A tail is torn only after everything that was ever synced, according to the lock
// file and the index; anything missing before that is damage. After a failed sync, data that was not durable yet
// may be lost in a power failure although it can still be read; the log says so and accepts no more appends. None
// of this holds on network file systems, on disks that lie about flushes, or against a hostile user of the same
// account.
package session
