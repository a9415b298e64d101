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
	d.noteRemoval(parent)
	defer d.noteRemoval(parent)
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
	d.resolve(ctx, n)
	give, _ := d.holdSending(ctx, n, removalPatience) // one that is still being sent goes to the trash afterwards
	defer give()
	d.mu.Lock()
	id := n.item.ID
	d.mu.Unlock()
	revision := int64(0)
	if id != "" {
		d.keepContent(ctx, n)
		var err error
		if revision, err = d.trash(ctx, id, isFolder, d.removalsBelow(n)); err != nil {
			d.doubt(parent, err)
			return d.status(err)
		}
	}
	if isFolder && d.local != nil {
		d.local.Remove(n.container()) // it is empty too
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone(n, revision)
	return fuse.OK
}

// resolve sends a file again whose request had no answer, so that what the drive may have of it is known here.
func (d *drive) resolve(ctx context.Context, n *node) {
	d.mu.Lock()
	w := n.writing
	isDoubtful := w != nil && (w.doubted != nil || w.entry != nil && w.entry.MayBeSent)
	d.mu.Unlock()
	if !isDoubtful {
		return
	}
	ctx, stop := context.WithTimeoutCause(ctx, removalPatience, syscall.EIO)
	defer stop()
	d.sendNow(ctx, n)
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

// Programs remove a folder by removing what is in it, and then the folder. A longer pause between two removals ends that.
const removalPause = 30 * time.Second

// Removals from a folder and from folders below it, one soon after another.
type removals struct{ beganMs, lastMs int64 }

// noteRemoval notes that something is removed from a folder.
func (d *drive) noteRemoval(folder *node) {
	now := time.Now().UnixMilli()
	d.mu.Lock()
	defer d.mu.Unlock()
	for ; folder != nil; folder = folder.parent {
		if now-folder.removals.lastMs > removalPause.Milliseconds() {
			folder.removals.beganMs = now
		}
		folder.removals.lastMs = now
	}
}

// removalsBelow returns since when programs have removed what was in a folder, or 0.
func (d *drive) removalsBelow(n *node) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Now().UnixMilli()-n.removals.lastMs > removalPause.Milliseconds() {
		return 0
	}
	return n.removals.beganMs
}

// trash puts an item into the trash, and returns the revision of that. What was removed from it since then is below it
// there.
func (d *drive) trash(ctx context.Context, itemID string, onlyIfEmpty bool, removedSinceMs int64) (int64, error) {
	body := map[string]any{"itemId": itemID}
	if onlyIfEmpty {
		body["onlyIfEmpty"] = true
	}
	if removedSinceMs > 0 {
		body["removedSinceMs"] = removedSinceMs
	}
	var answer struct {
		Revision int64 `json:"revision"`
	}
	err := d.outbox.backend.ask(ctx, "POST", "/trash", nil, body, &answer)
	if isStatus(err, 404) {
		return 0, nil // somebody else was faster
	}
	return answer.Revision, err
}

// gone takes a node away that was removed here with this revision, with what was written to it. mu is held.
func (d *drive) gone(n *node, revision int64) {
	if n.item.ID != "" && !n.isGone { // otherwise the changes have said so already
		d.removed[n.item.ID] = revision
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
