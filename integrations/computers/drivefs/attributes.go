package main

import (
	"context"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

func (d *drive) Lookup(cancel <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if refused := d.refuse(false); refused != fuse.OK {
		return refused
	}
	parent, status := d.folder(cancel, header.NodeId)
	if status != fuse.OK {
		return status
	}
	if err := d.waitForLeft(cancel, parent, name); err != nil {
		return d.status(err)
	}
	n := d.child(parent, name)
	if parent.isLocal || n != nil && n.isLocal {
		if n, status = d.findLocal(parent, name); status != fuse.OK && status != fuse.ENOENT {
			return status
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n == nil {
		out.SetEntryTimeout(absenceTimeout)
		return fuse.OK
	}
	d.showAny(n, out)
	if n.name != name {
		out.SetEntryTimeout(0) // another spelling: the kernel is told of changes by the node's own name
	}
	return fuse.OK
}

func (d *drive) Forget(number, count uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.nodes[number]
	if n == nil || n == d.root {
		return
	}
	n.lookups -= min(count, n.lookups)
	if n.lookups == 0 && n.isLocal && n.parent != nil && n.parent.isLocal && len(n.children) == 0 && n.opens == 0 {
		d.lose(n)
	}
	d.release(n)
}

func (d *drive) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	if refused := d.refuse(false); refused != fuse.OK {
		return refused
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.nodes[in.NodeId]
	if n == nil {
		return fuse.ENOENT
	}
	return d.answerAttributes(n, out)
}

// answerAttributes writes what is shown of a node. mu is held.
func (d *drive) answerAttributes(n *node, out *fuse.AttrOut) fuse.Status {
	out.SetTimeout(cacheTimeout)
	if n.isLocal {
		return d.localAttributes(n, &out.Attr)
	}
	d.attributes(n, &out.Attr)
	return fuse.OK
}

// SetAttr sets the size, the time and the executable bit. The drive has no owners, so it accepts every owner and keeps
// none: programs that unpack archives as root set them.
func (d *drive) SetAttr(cancel <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	if refused := d.refuse(true); refused != fuse.OK {
		return refused
	}
	n := d.nodeOf(in.NodeId)
	if n == nil {
		return fuse.ENOENT
	}
	status := fuse.OK
	if n.isLocal {
		status = d.setLocal(n, in)
	} else if size, ok := in.GetSize(); ok {
		if !n.isFile() {
			return fuse.EINVAL
		}
		if err := d.truncate(cancel, n, int64(size)); err != nil {
			return d.status(err)
		}
		d.mu.Lock()
		isOpen := n.writing != nil && n.writing.writers > 0
		d.mu.Unlock()
		if !isOpen {
			status = d.closed(n)
		}
	}
	if status == fuse.OK && !n.isLocal {
		status = d.setTimeAndMode(cancel, n, in)
	}
	if status != fuse.OK {
		return status
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.answerAttributes(n, out)
}

func (d *drive) setTimeAndMode(cancel <-chan struct{}, n *node, in *fuse.SetAttrIn) fuse.Status {
	modified, hasTime := in.GetMTime()
	if _, isTruncated := in.GetSize(); isTruncated && in.Valid&fuse.FATTR_MTIME_NOW != 0 {
		hasTime = false // that set it already
	}
	mode, hasMode := in.GetMode()
	d.mu.Lock()
	hasMode = hasMode && n.isFile() && mode&0o100 != 0 != n.executable
	d.mu.Unlock()
	if !hasTime && !hasMode {
		return fuse.OK
	}
	set := func() {
		if hasTime {
			n.modified = modified.Truncate(time.Millisecond)
		}
		if hasMode {
			n.executable = mode&0o100 != 0
		}
	}
	if isDone, err := d.setWhileSending(n, set); isDone {
		return d.status(err)
	}
	ctx, stop := interruptible(cancel)
	defer stop()
	give, err := d.holdSending(ctx, n, patience)
	if err != nil {
		return d.status(err)
	}
	defer give()
	d.mu.Lock()
	w, id, isUnsent, isGone := n.writing, n.item.ID, n.writing.isUnsent(), n.isGone
	d.mu.Unlock()
	// A folder's time is the one of its last change here.
	if !isUnsent && id != "" && n.isFile() && !isGone {
		body := map[string]any{"itemId": id}
		if hasTime {
			body["modifiedAtMs"] = modified.UnixMilli()
		}
		if hasMode {
			body["executable"] = mode&0o100 != 0
		}
		if err := d.tellAttributes(ctx, n, body); err != nil {
			return d.status(err)
		}
	}
	d.mu.Lock()
	set()
	d.mu.Unlock()
	if !isUnsent {
		return fuse.OK
	}
	return d.status(d.reenter(n, w))
}

// setWhileSending sets what `sent` will find different, without waiting for a large file.
func (d *drive) setWhileSending(n *node, set func()) (isDone bool, err error) {
	d.mu.Lock()
	w := n.writing
	d.mu.Unlock()
	if w == nil {
		return false, nil
	}
	w.mu.Lock() // so the entry does not end meanwhile
	defer w.mu.Unlock()
	d.mu.Lock()
	e := w.entry
	if e == nil || w.current != e {
		d.mu.Unlock()
		return false, nil
	}
	set()
	modifiedAtMs, executable := n.modified.UnixMilli(), n.executable
	d.mu.Unlock()
	return true, d.outbox.journal.amend(e, func() { e.ModifiedAtMs, e.Executable = modifiedAtMs, executable })
}

func (d *drive) tellAttributes(ctx context.Context, n *node, body map[string]any) error {
	var answer itemAnswer
	if err := d.outbox.backend.ask(ctx, "POST", "/attributes", nil, body, &answer); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n.item.Revision = max(n.item.Revision, answer.Item.Revision)
	return nil
}

func (d *drive) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	if refused := d.refuse(false); refused != fuse.OK {
		return refused
	}
	const block, unlimited, files = 4096, 1 << 50, 1 << 30
	d.mu.Lock()
	defer d.mu.Unlock()
	free := int64(unlimited)
	if d.freeBytes != nil {
		free = max(0, *d.freeBytes-d.unsentBytes)
	}
	out.Bsize, out.Frsize, out.NameLen = block, block, maxNameBytes
	out.Bfree = uint64(free) / block
	out.Bavail, out.Blocks = out.Bfree, unlimited/block
	out.Files, out.Ffree = files, files
	return fuse.OK
}

func (d *drive) OnUnmount() {}
