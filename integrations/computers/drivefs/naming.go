package main

import (
	"context"
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
	if !isName(name) {
		return nil, fuse.EINVAL
	}
	return d.folder(cancel, number)
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

func (d *drive) Unlink(cancel <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return d.remove(cancel, header.NodeId, name, false)
}

func (d *drive) Rmdir(cancel <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return d.remove(cancel, header.NodeId, name, true)
}

func (d *drive) remove(cancel <-chan struct{}, parentNumber uint64, name string, isFolder bool) fuse.Status {
	parent, status := d.changeable(cancel, parentNumber, name)
	if status == fuse.EINVAL {
		status = fuse.ENOENT
	}
	if status != fuse.OK {
		return status
	}
	if parent.isLocal {
		return d.removeLocal(parent, d.child(parent, name), name)
	}
	n := d.child(parent, name)
	switch {
	case n == nil:
		return fuse.ENOENT
	case n.isFolder() && !isFolder:
		return fuse.EISDIR
	case !n.isFolder() && isFolder:
		return fuse.ENOTDIR
	case n.isLocal:
		return d.removeLocal(parent, n, name)
	case isFolder:
		if _, status := d.folder(cancel, n.number); status != fuse.OK {
			return status
		}
		d.mu.Lock()
		isEmpty := len(n.children) == 0
		d.mu.Unlock()
		if !isEmpty {
			return fuse.Status(syscall.ENOTEMPTY)
		}
	}
	ctx, stop := interruptible(cancel)
	defer stop()
	give, _ := d.holdSending(ctx, n, removalPatience) // one that is still being sent goes to the trash afterwards
	defer give()
	if n.item.ID != "" {
		d.keepContent(ctx, n)
		if err := d.trash(ctx, n.item.ID, isFolder); err != nil {
			d.doubt(parent, err)
			return d.status(err)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone(n)
	return fuse.OK
}

// holdSending waits until a file is not being sent. The caller calls the result at the end.
func (d *drive) holdSending(ctx context.Context, n *node, timeout time.Duration) (give func(), err error) {
	d.mu.Lock()
	w := n.writing
	d.mu.Unlock()
	if w == nil {
		return func() {}, nil
	}
	ctx, stop := context.WithTimeoutCause(ctx, timeout, syscall.EIO)
	defer stop()
	if err := w.sending.take(ctx); err != nil {
		return func() {}, err
	}
	return w.sending.give, nil
}

// keepContent fetches a file that is open before it goes to the trash.
func (d *drive) keepContent(ctx context.Context, n *node) {
	d.mu.Lock()
	it := n.item
	isNeeded := n.opens > 0 && n.isFile() && it.Size > 0 && it.Size <= maxWholeBytes &&
		(n.writing == nil || n.writing.file == nil)
	d.mu.Unlock()
	if !isNeeded {
		return
	}
	if file, err := d.content(ctx, it); err == nil {
		d.mu.Lock()
		n.kept = &keptContent{file}
		d.mu.Unlock()
	}
}

func (d *drive) trash(ctx context.Context, itemID string, onlyIfEmpty bool) error {
	body := map[string]any{"itemId": itemID}
	if onlyIfEmpty {
		body["onlyIfEmpty"] = true
	}
	err := d.outbox.backend.ask(ctx, "POST", "/trash", nil, body, nil)
	if isStatus(err, 404) {
		return nil // somebody else was faster
	}
	return err
}

// gone takes a node away that was removed here, with what was written to it. mu is held.
func (d *drive) gone(n *node) {
	if n.item.ID != "" && !n.isGone { // otherwise the changes have said so already
		d.removed[n.item.ID] = true
	}
	if n.writing != nil {
		d.forgetEntry(n.writing)
	}
	delete(d.unsent, n)
	if n.writing != nil {
		d.count(n.writing, 0)
	}
	d.lose(n)
	if w := n.writing; w != nil && n.opens == 0 {
		go d.retireNow(n, w)
	}
}

func (d *drive) Rename(cancel <-chan struct{}, in *fuse.RenameIn, oldName, newName string) fuse.Status {
	if in.Flags&^renameNoReplace != 0 {
		return fuse.EINVAL
	}
	from, status := d.folder(cancel, in.NodeId)
	if status != fuse.OK {
		return status
	}
	to, status := d.changeable(cancel, in.Newdir, newName)
	if status != fuse.OK {
		return status
	}
	source, target := d.child(from, oldName), d.child(to, newName)
	isLocal := from.isLocal || source != nil && source.isLocal
	if source == nil && !isLocal {
		return fuse.ENOENT
	}
	isFolder := source != nil && source.isFolder()
	staysLocal := to.isLocal || target != nil && target.isLocal || d.staysLocal(to, newName, isFolder)
	if isLocal != staysLocal {
		return fuse.EXDEV
	}
	if target != nil && target != source && in.Flags&renameNoReplace != 0 {
		return fuse.Status(syscall.EEXIST)
	}
	if isLocal {
		return d.renameLocal(from, source, oldName, to, target, newName)
	}
	if target == source {
		target = nil // another spelling of the same name
	}
	if target != nil {
		if status := d.replaceable(cancel, source, target); status != fuse.OK {
			return status
		}
	}
	ctx, stop := interruptible(cancel)
	defer stop()
	// A request with a file's old name has to end first. It may be a large file.
	give, err := d.holdSending(ctx, source, renamePatience)
	if err != nil {
		return d.status(err)
	}
	defer give()
	if target != nil {
		give, _ := d.holdSending(ctx, target, removalPatience)
		defer give()
	}
	if err := d.move(ctx, source, to, newName, target); err != nil {
		d.doubt(from, err)
		d.doubt(to, err)
		return d.status(err)
	}
	return fuse.OK
}

// replaceable says whether a rename may replace a target.
func (d *drive) replaceable(cancel <-chan struct{}, source, target *node) fuse.Status {
	switch {
	case source.isFolder() && !target.isFolder():
		return fuse.ENOTDIR
	case !source.isFolder() && target.isFolder():
		return fuse.EISDIR
	case target.isFolder():
		if _, status := d.folder(cancel, target.number); status != fuse.OK {
			return status
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(target.children) > 0 {
			return fuse.Status(syscall.ENOTEMPTY)
		}
	}
	return fuse.OK
}

// move gives a node another name. A file that the drive does not have yet takes the place of the target, so that its
// content becomes the target's next version. Otherwise the target goes to the trash.
func (d *drive) move(ctx context.Context, source, to *node, name string, target *node) error {
	d.mu.Lock()
	id, isTargetThere := source.item.ID, target != nil && target.item.ID != ""
	d.mu.Unlock()
	if isTargetThere {
		d.keepContent(ctx, target)
	}
	if isTargetThere && id == "" && !target.isFile() { // a link has no versions
		if err := d.trash(ctx, target.item.ID, false); err != nil {
			return err
		}
		isTargetThere = false
	}
	var answer itemAnswer
	if id != "" {
		body := map[string]any{"itemId": id, "parentId": to.container(), "name": name, "replace": isTargetThere}
		if err := d.outbox.backend.ask(ctx, "POST", "/move", nil, body, &answer); err != nil {
			return err
		}
	}
	d.mu.Lock()
	if source.parent != nil {
		source.parent.modified = time.Now()
	}
	if target != nil {
		replaced := target.item
		if id == "" && isTargetThere {
			// The source becomes what the target was.
			delete(d.items, replaced.ID)
			target.item = item{}
			source.item = replaced
			d.items[replaced.ID] = source
		}
		d.gone(target)
	}
	d.detach(source)
	if id != "" {
		answer.Item.Version, answer.Item.Sha256, answer.Item.Size =
			source.item.Version, source.item.Sha256, source.item.Size
		source.item = answer.Item
	}
	d.place(to, source, name)
	to.modified = time.Now()
	w := source.writing
	isWritten := w != nil && w.writers == 0
	d.mu.Unlock()
	if w == nil {
		return nil
	}
	if err := d.reenter(source, w); err != nil {
		return errors.Join(syscall.EIO, err)
	}
	if isWritten {
		d.sendLater(source, 0)
	}
	return nil
}
