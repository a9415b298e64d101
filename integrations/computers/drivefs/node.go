package main

import (
	"context"
	"os"
	"slices"
	"strings"
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

	// Of a folder.
	children      map[string]*node // by keyOf(name)
	sorted        []*node          // the children by name, or nil
	isLoaded      bool
	wasListed     bool          // it was loaded once, even if it is not now
	loading       chan struct{} // closed when the current listing ends
	during        []item        // changes that came during the listing
	listed        int64         // the revision that the listing has at least
	used          time.Time     // when a name in it was last asked for
	isPrefetching bool
	ignore        *ignoreRules // of the folder's .driveignore
	// Of a file that is being written or was not sent yet.
	writing *writing
	// Of a local file: what was last opened, for when it has no name any more.
	lastOpen *os.File
	// Of a file in the trash that is open: its content.
	kept *keptContent
}

func (n *node) isFolder() bool { return n.mode == syscall.S_IFDIR }
func (n *node) isFile() bool   { return n.mode == syscall.S_IFREG }

// container is the id by which the worker knows a folder as the parent of others.
func (n *node) container() string {
	if n.item.Kind == "app" {
		return "app:" + n.item.ID
	}
	return n.item.ID
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

// newNode makes a node without a place. mu is held.
func (d *drive) newNode(mode uint32) *node {
	d.lastNumber++
	n := &node{number: d.lastNumber, mode: mode, modified: time.Now()}
	if mode == syscall.S_IFDIR {
		n.children = map[string]*node{}
	}
	d.nodes[n.number] = n
	return n
}

// intern makes items share the strings that most of them have. mu is held.
func (it *item) intern(d *drive) {
	if parent := d.containers[it.ParentID]; parent != nil && parent.item.Kind != "app" {
		it.ParentID = parent.item.ID
	}
	if it.Kind == "file" {
		it.Kind = "file"
	}
}

// know makes the node of an item, or brings the one that is there up to date. mu is held.
func (d *drive) know(it item) *node {
	it.intern(d)
	n := d.items[it.ID]
	if n == nil || n.mode != modeOf(it.Kind) {
		n = d.newNode(modeOf(it.Kind))
		n.item = it
		d.items[it.ID] = n
		if n.isFolder() {
			d.containers[n.container()] = n
		}
	} else if it.Revision < n.item.Revision {
		return n
	}
	d.update(n, it)
	return n
}

// update shows what the drive has now, except for what was written here and not sent. mu is held.
func (d *drive) update(n *node, it item) {
	isChanged := n.item.Version != it.Version || n.item.Sha256 != it.Sha256 || n.item.Target != it.Target
	isShownChanged := isChanged || n.item.ModifiedAtMs != it.ModifiedAtMs || n.item.Executable != it.Executable
	if n.writing.isUnsent() {
		// The version that was read stays the base of what is written, so that the drive sees the conflict.
		it.Version, it.Sha256, it.Size = n.item.Version, n.item.Sha256, n.item.Size
		n.item = it
		return
	}
	if isChanged && n.writing != nil {
		n.writing.isOld = true
	}
	n.item = it
	n.size = it.Size
	if n.mode == syscall.S_IFLNK {
		n.size = int64(len(it.Target))
	}
	n.executable = it.Executable
	if !n.isFolder() || it.ModifiedAtMs > n.modified.UnixMilli() || !n.isLoaded {
		n.modified = time.UnixMilli(it.ModifiedAtMs)
	}
	if isShownChanged && n.lookups > 0 {
		n.isStale = n.isStale || isChanged
		d.tellOfNode(n)
	}
}

// place gives a node a name in a folder. If the name is taken, the one that the computer wrote stays. mu is held.
func (d *drive) place(parent *node, n *node, name string) {
	if other := parent.children[keyOf(name)]; other != nil && other != n {
		if other.isLocal || other.item.ID == "" {
			n.parent, n.name = nil, name
			return
		}
		other.parent = nil
	}
	if n.parent != nil && (n.parent != parent || keyOf(n.name) != keyOf(name)) {
		d.detach(n)
	}
	n.parent, n.name = parent, name
	parent.children[keyOf(name)] = n
	parent.sorted = nil
}

// detach takes a node out of its folder. mu is held.
func (d *drive) detach(n *node) {
	if n.parent != nil && n.parent.children[keyOf(n.name)] == n {
		delete(n.parent.children, keyOf(n.name))
		n.parent.sorted = nil
	}
	n.parent = nil
}

// lose takes a node away for good. mu is held.
func (d *drive) lose(n *node) {
	if n.parent != nil {
		n.parent.modified = time.Now()
	}
	d.detach(n)
	n.isGone = true
	if n.item.ID != "" && d.items[n.item.ID] == n {
		delete(d.items, n.item.ID)
		if n.isFolder() {
			delete(d.containers, n.container())
		}
	}
	d.release(n)
}

// release frees a node that neither the kernel nor the tree needs. mu is held.
func (d *drive) release(n *node) {
	if n.lookups == 0 && n.opens == 0 && n.isGone && n.writing == nil {
		delete(d.nodes, n.number)
	}
}

// children returns what a folder has, by name. mu is held.
func (n *node) list() []*node {
	if n.sorted == nil {
		n.sorted = make([]*node, 0, len(n.children))
		for _, child := range n.children {
			n.sorted = append(n.sorted, child)
		}
		slices.SortFunc(n.sorted, func(a, b *node) int { return strings.Compare(a.name, b.name) })
	}
	return n.sorted
}

func (d *drive) nodeOf(number uint64) *node {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.nodes[number]
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

// load lists a folder of the drive, if that was not done yet. Callers who want the same listing wait for it together.
func (d *drive) load(ctx context.Context, folder *node) error {
	for {
		d.mu.Lock()
		if folder.isLoaded || folder.isGone {
			d.mu.Unlock()
			return nil
		}
		other := folder.loading
		if other == nil {
			folder.loading = make(chan struct{})
			folder.during = nil
		}
		d.mu.Unlock()
		if other == nil {
			return d.listFolder(ctx, folder)
		}
		select {
		case <-other:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (d *drive) listFolder(ctx context.Context, folder *node) error {
	items, revision, err := d.outbox.backend.children(ctx, folder.container())
	locals := d.localNames(folder)
	d.mu.Lock()
	defer d.mu.Unlock()
	close(folder.loading)
	folder.loading = nil
	if err != nil {
		return err
	}
	old := folder.children
	folder.children, folder.sorted = make(map[string]*node, len(items)), nil
	for key, n := range old {
		if n.item.ID == "" && !n.isLocal || n.item.Revision > revision || n.writing.isUnsent() {
			folder.children[key] = n // made, moved or written here since
		} else {
			n.parent = nil
		}
	}
	for _, name := range locals {
		n := old[keyOf(name)]
		if n == nil || !n.isLocal {
			n = d.newLocal()
		}
		d.place(folder, n, name)
	}
	isAgain := folder.wasListed // so the kernel may know names that have changed since
	for _, it := range items {
		if !isName(it.Name) || d.removed[it.ID] {
			continue
		}
		if known := d.items[it.ID]; known != nil && known.item.Revision > it.Revision && known.parent != folder {
			continue // moved away since
		}
		n := d.know(it)
		d.place(folder, n, it.Name)
		if isAgain && old[keyOf(it.Name)] != n {
			d.tellOfName(folder, it.Name)
		}
	}
	for key, n := range old {
		if isAgain && folder.children[key] == nil {
			d.tellOfName(folder, n.name)
		}
	}
	folder.isLoaded, folder.wasListed, folder.listed = true, true, revision
	during := folder.during
	folder.during = nil
	for _, it := range during {
		d.apply(it)
	}
	return nil
}
