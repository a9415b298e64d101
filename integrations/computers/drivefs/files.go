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

func (d *drive) Write(cancel <-chan struct{}, in *fuse.WriteIn, bytes []byte) (uint32, fuse.Status) {
	if refused := d.refuse(true); refused != fuse.OK {
		return 0, refused
	}
	h := d.handles.get(in.Fh)
	if h == nil || !h.canWrite {
		return 0, fuse.EBADF
	}
	if h.local != nil {
		count, err := h.local.WriteAt(bytes, int64(in.Offset))
		return uint32(count), localStatus(err)
	}
	n, end := h.node, int64(in.Offset)+int64(len(bytes))
	w, err := d.changing(cancel, n, true, end)
	if err != nil {
		return 0, d.status(err)
	}
	defer w.mu.RUnlock()
	count, err := w.file.WriteAt(bytes, int64(in.Offset))
	if count == 0 && err != nil {
		return 0, d.status(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.change(n, w, max(n.size, int64(in.Offset)+int64(count)))
	w.isEmptied = false
	return uint32(count), fuse.OK
}

// changing returns the state of a file that can be changed now. Its mu is held for reading.
func (d *drive) changing(cancel <-chan struct{}, n *node, keep bool, size int64) (*writing, error) {
	for {
		d.mu.Lock()
		w := d.writingOf(n)
		isOld := w.isOld
		err := d.allow(w, size)
		d.mu.Unlock()
		if err != nil {
			return nil, err
		}
		w.mu.RLock()
		if w.file != nil && !w.isEntered && !isOld {
			return w, nil
		}
		w.mu.RUnlock()
		ctx, stop := interruptible(cancel)
		w.mu.Lock()
		err = d.prepare(ctx, n, w, keep)
		if err == nil {
			d.mu.Lock()
			w.isOld = false
			d.mu.Unlock()
		}
		w.mu.Unlock()
		stop()
		if err != nil {
			return nil, err
		}
	}
}

// truncate gives a file a size.
func (d *drive) truncate(cancel <-chan struct{}, n *node, size int64) error {
	w, err := d.changing(cancel, n, size > 0, size)
	if err != nil {
		return err
	}
	err = w.file.Truncate(size)
	if err == nil {
		d.mu.Lock()
		d.change(n, w, size)
		w.isEmptied = size == 0
		d.mu.Unlock()
	}
	w.mu.RUnlock()
	return err
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
	w := n.writing
	d.mu.Unlock()
	if isLast {
		d.closed(n)
	} else if w != nil && n.isGone {
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

const (
	keepSize = 1 // FALLOC_FL_KEEP_SIZE
)

func (d *drive) Fallocate(cancel <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	if refused := d.refuse(true); refused != fuse.OK {
		return refused
	}
	h := d.handles.get(in.Fh)
	if h == nil || !h.canWrite {
		return fuse.EBADF
	}
	if h.local != nil {
		return localStatus(syscall.Fallocate(int(h.local.Fd()), in.Mode, int64(in.Offset), int64(in.Length)))
	}
	if in.Mode&^keepSize != 0 {
		return fuse.ENOTSUP
	}
	end := int64(in.Offset + in.Length)
	d.mu.Lock()
	isLonger := in.Mode == 0 && end > h.node.size
	d.mu.Unlock()
	if !isLonger {
		return fuse.OK
	}
	return d.status(d.truncate(cancel, h.node, end))
}
