package main

import (
	"context"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

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
	d.mu.Lock()
	id := n.item.ID
	d.mu.Unlock()
	if id != "" {
		d.keepContent(ctx, n)
		if err := d.trash(ctx, id, isFolder); err != nil {
			d.doubt(parent, err)
			return d.status(err)
		}
	}
	if isFolder && d.local != nil {
		d.local.Remove(n.container()) // it is empty too
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
