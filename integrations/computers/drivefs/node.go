package main

import (
	"os"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

const (
	// How long the kernel may use what it knows. Changes from elsewhere end it early.
	cacheTimeout = 10 * time.Minute
	// How long the kernel may remember that a name is not there.
	absenceTimeout = time.Minute
	blockBytes     = 512
)

// node is a file, folder or link that the kernel or a listing knows. Its fields are guarded by its drive's mu, except
// where they say otherwise.
type node struct {
	number uint64
	parent *node
	name   string
	mode   uint32 // S_IFDIR, S_IFREG or S_IFLNK

	// What the drive has. The ID is empty for a file that is not there yet.
	item item
	// What is shown, which is newer while something is not sent.
	size       int64
	modified   time.Time
	executable bool

	// It lies in the computer's local folder. What is known of it is on the disk.
	isLocal bool
	// It has no name any more. Programs may still have it open.
	isGone bool
	// How often the kernel has been told of it, less how often it has forgotten it.
	lookups uint64
	// How many handles are open.
	opens int
	// The kernel may have an older content or listing in its cache.
	isStale bool

	// These fields are a folder's.
	containerID   string
	children      map[string]*node // by keyOf(name)
	sorted        []*node          // the children by name, or nil
	isLoaded      bool
	wasListed     bool          // it was loaded once, even if it is not now
	loading       chan struct{} // closed when the current listing ends
	during        []item        // changes that came during the listing
	listed        int64         // the revision that the listing has at least
	used          time.Time     // when a name in it was last asked for
	isPrefetching bool
	removals      removals
	ignore        *ignoreRules // of the folder's .driveignore
	// Set for a file that is being written or was not sent yet.
	writing *writing
	// What was last opened of a local file, for when it has no name any more.
	lastOpen *os.File
	// The content of a file in the trash that is open.
	kept *keptContent
}

func (n *node) isFolder() bool { return n.mode == syscall.S_IFDIR }

func (n *node) isFile() bool { return n.mode == syscall.S_IFREG }

// container is the id by which the worker knows a folder as the parent of others. It never changes.
func (n *node) container() string { return n.containerID }

func containerOf(it *item) string {
	if it.Kind == "app" {
		return "app:" + it.ID
	}
	return it.ID
}

func modeOf(kind string) uint32 {
	switch kind {
	case "folder", "app":
		return syscall.S_IFDIR
	case "symlink", "repository":
		return syscall.S_IFLNK
	}
	return syscall.S_IFREG
}

// attributes writes what is shown of a node of the drive. mu is held.
func (d *drive) attributes(n *node, out *fuse.Attr) {
	out.Ino = n.number
	out.Size = uint64(n.size)
	out.Blocks = (out.Size + blockBytes - 1) / blockBytes
	out.Blksize = 128 << 10
	out.SetTimes(&n.modified, &n.modified, &n.modified)
	out.Owner = d.owner
	out.Nlink = 1
	if n.isGone {
		out.Nlink = 0
	}
	switch {
	case n.isFolder():
		out.Mode = syscall.S_IFDIR | 0o755
	case n.mode == syscall.S_IFLNK:
		out.Mode = syscall.S_IFLNK | 0o777
	case n.executable:
		out.Mode = syscall.S_IFREG | 0o755
	default:
		out.Mode = syscall.S_IFREG | 0o644
	}
}

// show answers the kernel with a node, which it knows from then on. mu is held.
func (d *drive) show(n *node, out *fuse.EntryOut) {
	n.lookups++
	out.NodeId = n.number
	out.Generation = 1
	d.attributes(n, &out.Attr)
	out.SetEntryTimeout(cacheTimeout)
	out.SetAttrTimeout(cacheTimeout)
}
