package main

import (
	"errors"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

const (
	renameNoReplace = 1 // RENAME_NOREPLACE
	// How long a removal waits for a content that is being sent.
	removalPatience = 5 * time.Second
	renamePatience  = 10 * time.Minute
)

// changeable returns a folder in which a name may be made, changed or removed.
func (d *drive) changeable(cancel <-chan struct{}, number uint64, name string) (*node, fuse.Status) {
	if refused := d.refuse(true); refused != fuse.OK {
		return nil, refused
	}
	if len(name) > maxNameBytes {
		return nil, fuse.Status(syscall.ENAMETOOLONG)
	}
	if !isName(name) {
		return nil, fuse.EINVAL
	}
	folder, status := d.folder(cancel, number)
	if status == fuse.OK && d.isDeepest(folder) {
		return nil, fuse.Status(syscall.ENAMETOOLONG)
	}
	return folder, status
}

// isDeepest says whether nothing may be below a folder of the drive.
func (d *drive) isDeepest(folder *node) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !folder.isLocal && folder.depth() >= maxDepth
}

// folder returns a folder whose children are known.
func (d *drive) folder(cancel <-chan struct{}, number uint64) (*node, fuse.Status) {
	d.mu.Lock()
	n := d.nodes[number]
	isReady := n != nil && (n.isLoaded || n.isLocal)
	if n != nil {
		n.used = time.Now()
	}
	d.mu.Unlock()
	if n == nil {
		return nil, fuse.ENOENT
	}
	if !n.isFolder() {
		return nil, fuse.ENOTDIR
	}
	if isReady {
		return n, fuse.OK
	}
	ctx, stop := interruptible(cancel)
	defer stop()
	return n, d.status(d.load(ctx, n))
}

func (d *drive) child(parent *node, name string) *node {
	d.mu.Lock()
	defer d.mu.Unlock()
	return parent.children[keyOf(name)]
}

func (d *drive) Mkdir(cancel <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	body := map[string]any{}
	return d.make(cancel, in.NodeId, name, "/folders", body, true, out, func(path string) error {
		return d.local.Mkdir(path, fileMode(in.Mode))
	})
}

func (d *drive) Symlink(cancel <-chan struct{}, header *fuse.InHeader, target, name string, out *fuse.EntryOut,
) fuse.Status {
	body := map[string]any{"target": target}
	return d.make(cancel, header.NodeId, name, "/symlinks", body, false, out, func(path string) error {
		return d.local.Symlink(target, path)
	})
}

// make makes a folder or a link, on the drive or locally.
func (d *drive) make(cancel <-chan struct{}, parentNumber uint64, name, path string, body map[string]any, isFolder bool,
	out *fuse.EntryOut, makeLocal func(path string) error) fuse.Status {
	parent, status := d.changeable(cancel, parentNumber, name)
	if status != fuse.OK {
		return status
	}
	if d.staysLocal(parent, name, isFolder) {
		n, status := d.makeLocal(parent, name, makeLocal)
		if status == fuse.OK {
			d.mu.Lock()
			d.showAny(n, out)
			d.mu.Unlock()
		}
		return status
	}
	if d.child(parent, name) != nil {
		return fuse.Status(syscall.EEXIST)
	}
	ctx, stop := interruptible(cancel)
	defer stop()
	body["id"], body["parentId"], body["name"] = newItemID(), parent.container(), name
	var answer itemAnswer
	if err := d.outbox.backend.ask(ctx, "POST", path, nil, body, &answer); err != nil {
		d.doubt(parent, err)
		return d.status(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.know(answer.Item)
	if isFolder && len(n.children) == 0 {
		n.isLoaded, n.listed = true, answer.Item.Revision // nobody can have put anything there before
	}
	d.place(parent, n, answer.Item.Name)
	parent.modified = time.Now()
	d.show(n, out)
	return fuse.OK
}

// doubt lists a folder again before its next use if the worker has refused what should be possible there. The changes
// would say so too, but later.
func (d *drive) doubt(folder *node, err error) {
	var refused *refusal
	if !errors.As(err, &refused) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !folder.isLocal {
		folder.isLoaded, folder.isStale = false, true
	}
}

func (d *drive) Link(<-chan struct{}, *fuse.LinkIn, string, *fuse.EntryOut) fuse.Status {
	return fuse.EPERM
}

func (d *drive) Readlink(_ <-chan struct{}, header *fuse.InHeader) ([]byte, fuse.Status) {
	if refused := d.refuse(false); refused != fuse.OK {
		return nil, refused
	}
	d.mu.Lock()
	n := d.nodes[header.NodeId]
	if n == nil || n.mode != syscall.S_IFLNK {
		d.mu.Unlock()
		return nil, fuse.EINVAL
	}
	target, isLocal, path := n.item.Target, n.isLocal, d.localPath(n)
	d.mu.Unlock()
	if isLocal {
		var err error
		if target, err = d.local.Readlink(path); err != nil {
			return nil, localStatus(err)
		}
	}
	return []byte(target), fuse.OK
}
