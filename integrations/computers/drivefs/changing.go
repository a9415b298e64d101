package main

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

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
