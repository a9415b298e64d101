package main

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

func canWrite(flags uint32) bool { return flags&syscall.O_ACCMODE != syscall.O_RDONLY }

func (d *drive) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	isWriter := canWrite(in.Flags)
	if refused := d.refuse(isWriter); refused != fuse.OK {
		return refused
	}
	if d.refuseHandle() {
		return fuse.Status(syscall.ENFILE)
	}
	d.mu.Lock()
	n := d.nodes[in.NodeId]
	d.mu.Unlock()
	if n == nil || !n.isFile() {
		return fuse.ENOENT
	}
	h := &handle{node: n, canWrite: isWriter}
	if n.isLocal {
		file, err := d.openLocalFile(n, in.Flags)
		if err != nil {
			return localStatus(err)
		}
		h.local = file
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opened(h, out)
	return fuse.OK
}

// opened answers the kernel with a handle. mu is held.
func (d *drive) opened(h *handle, out *fuse.OpenOut) {
	n := h.node
	n.opens++
	if h.canWrite && !n.isLocal {
		d.writingOf(n).writers++
	}
	if !n.isStale {
		out.OpenFlags |= fuse.FOPEN_KEEP_CACHE
	}
	n.isStale = false
	if !h.canWrite {
		out.OpenFlags |= fuse.FOPEN_NOFLUSH
	}
	out.Fh = d.handles.add(h)
}

func (d *drive) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	if d.refuseHandle() {
		return fuse.Status(syscall.ENFILE)
	}
	n, status := d.makeFile(cancel, in.NodeId, name, in.Mode)
	if status != fuse.OK {
		return status
	}
	h := &handle{node: n, canWrite: true}
	if n.isLocal {
		file, err := d.openLocalFile(n, in.Flags&^(syscall.O_EXCL|syscall.O_CREAT))
		if err != nil {
			return localStatus(err)
		}
		h.local = file
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.showAny(n, &out.EntryOut)
	d.opened(h, &out.OpenOut)
	return fuse.OK
}

func (d *drive) Mknod(cancel <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	if in.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return fuse.EPERM
	}
	n, status := d.makeFile(cancel, in.NodeId, name, in.Mode)
	if status != fuse.OK {
		return status
	}
	d.mu.Lock()
	d.showAny(n, out)
	d.mu.Unlock()
	if n.isLocal {
		return fuse.OK
	}
	return d.closed(n)
}

// makeFile makes an empty file. The drive gets it when it is closed.
func (d *drive) makeFile(cancel <-chan struct{}, parentNumber uint64, name string, mode uint32) (*node, fuse.Status) {
	parent, status := d.changeable(cancel, parentNumber, name)
	if status != fuse.OK {
		return nil, status
	}
	if d.staysLocal(parent, name, false) {
		return d.makeLocal(parent, name, func(path string) error {
			file, err := d.local.OpenFile(path, syscall.O_CREAT|syscall.O_EXCL|syscall.O_RDWR, fileMode(mode))
			if err == nil {
				file.Close()
			}
			return err
		})
	}
	ctx, stop := interruptible(cancel)
	defer stop()
	if err := d.waitForSent(ctx); err != nil {
		return nil, d.status(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if parent.children[keyOf(name)] != nil {
		return nil, fuse.Status(syscall.EEXIST)
	}
	n := d.newNode(syscall.S_IFREG)
	n.executable = mode&0o100 != 0
	d.place(parent, n, name)
	parent.modified = time.Now()
	w := d.writingOf(n)
	d.change(n, w, 0)
	w.isEmptied = true
	return n, fuse.OK
}

// Flush comes with each close. What was written is in the journal when the close returns.
func (d *drive) Flush(_ <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	h := d.handles.get(in.Fh)
	if h == nil || !h.canWrite || h.local != nil {
		return fuse.OK
	}
	d.mu.Lock()
	w := h.node.writing
	// A shell closes its copy of an emptied file before its command writes to another.
	isNeeded := w != nil && w.isDirty && !w.isEmptied
	d.mu.Unlock()
	if !isNeeded {
		return fuse.OK
	}
	return d.status(d.commit(h.node, w))
}

func (d *drive) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	h := d.handles.remove(in.Fh)
	if h == nil {
		return
	}
	if h.local != nil {
		h.local.Close()
	}
	if h.file != nil {
		h.file.Close()
	}
	n := h.node
	d.mu.Lock()
	n.opens--
	isLast := false
	if h.canWrite && !n.isLocal {
		n.writing.writers--
		isLast = n.writing.writers == 0
	}
	if n.opens == 0 && n.isGone && n.kept != nil {
		n.kept.file.Close()
		n.kept = nil
	}
	d.release(n)
	w, isGone := n.writing, n.isGone
	d.mu.Unlock()
	if isLast {
		d.closed(n)
	} else if w != nil && isGone {
		d.retireNow(n, w)
	}
}

// closed enters a file that no program writes any more, and has it sent.
func (d *drive) closed(n *node) fuse.Status {
	d.mu.Lock()
	w := n.writing
	isNew := n.item.ID == ""
	d.mu.Unlock()
	if w == nil {
		return fuse.OK
	}
	if err := d.commit(n, w); err != nil {
		d.outbox.fail(err)
		return d.status(err)
	}
	d.retireNow(n, w)
	if d.ended.Err() != nil {
		go d.leaveUnsent() // the mount has ended, but a program had the file open
		return fuse.OK
	}
	delay := time.Duration(0)
	if isNew {
		delay = newFileDelay
	}
	d.sendLater(n, delay)
	return fuse.OK
}

func (d *drive) retireNow(n *node, w *writing) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.retire(n, w)
}

// Fsync returns when the file is on the drive.
func (d *drive) Fsync(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	h := d.handles.get(in.Fh)
	if h == nil {
		return fuse.EBADF
	}
	if h.local != nil {
		return localStatus(h.local.Sync())
	}
	ctx, stop := interruptible(cancel)
	defer stop()
	return d.status(d.sendPatiently(ctx, h.node))
}

func (d *drive) FsyncDir(<-chan struct{}, *fuse.FsyncIn) fuse.Status { return fuse.OK }
