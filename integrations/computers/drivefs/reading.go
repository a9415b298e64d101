package main

import (
	"context"
	"io"
	"net/http"
	"os"

	"github.com/hanwen/go-fuse/v2/fuse"
)

const (
	// A larger file is read by parts, unless its content is here.
	maxWholeBytes = 64 << 20
	partBytes     = 4 << 20
	keptParts     = 8 // of one computer
	// When a small file is read, the small files beside it are probably read next.
	smallBytes       = 256 << 10
	maxPrefetchFiles = 64
	maxPrefetchBytes = 8 << 20
	prefetchers      = 4
)

// The content of a file that went to the trash while programs have it open.
type keptContent struct{ file *os.File }

func (d *drive) content(ctx context.Context, it item) (*os.File, error) {
	return d.cache.get(ctx, d.spec.SpaceID, it, func(ctx context.Context) (*http.Response, error) {
		return d.outbox.backend.content(ctx, it, 0, 0)
	})
}

func (d *drive) Read(cancel <-chan struct{}, in *fuse.ReadIn, buffer []byte) (fuse.ReadResult, fuse.Status) {
	if refused := d.refuse(false); refused != fuse.OK {
		return nil, refused
	}
	h := d.handles.get(in.Fh)
	if h == nil {
		return nil, fuse.EBADF
	}
	count, err := d.readAt(cancel, h, buffer, int64(in.Offset))
	if err != nil && err != io.EOF {
		return nil, d.status(err)
	}
	return fuse.ReadResultData(buffer[:count]), fuse.OK
}

func (d *drive) readAt(cancel <-chan struct{}, h *handle, buffer []byte, offset int64) (int, error) {
	if h.local != nil {
		return h.local.ReadAt(buffer, offset)
	}
	n := h.node
	for {
		d.mu.Lock()
		w, it, kept := n.writing, n.item, n.kept
		isStaged := w != nil && !w.isOld
		d.mu.Unlock()
		if isStaged {
			w.mu.RLock()
			if w.file != nil {
				defer w.mu.RUnlock()
				return w.file.ReadAt(buffer, offset)
			}
			w.mu.RUnlock()
			d.mu.Lock()
			isSame := n.writing == w && n.item.ID == it.ID
			d.mu.Unlock()
			if !isSame {
				continue
			}
		}
		if kept != nil {
			return kept.file.ReadAt(buffer, offset)
		}
		if it.ID == "" || offset >= it.Size {
			return 0, io.EOF
		}
		return d.readContent(cancel, h, it, buffer, offset)
	}
}

func (d *drive) readContent(cancel <-chan struct{}, h *handle, it item, buffer []byte, offset int64) (int, error) {
	key := contentKey(&it)
	h.mu.Lock()
	if h.key != key {
		h.file, h.key = nil, key // others may still read from the old file, so it is not closed here
	}
	file := h.file
	h.mu.Unlock()
	if file != nil {
		return file.ReadAt(buffer, offset)
	}
	ctx, stop := interruptible(cancel)
	defer stop()
	if it.Size > maxWholeBytes && !d.cache.has(d.spec.SpaceID+"/"+key) {
		return d.parts.readAt(ctx, it, buffer, offset)
	}
	if it.Size <= smallBytes {
		d.prefetchBeside(h.node)
	}
	file, err := d.content(ctx, it)
	if err != nil {
		return 0, err
	}
	h.mu.Lock()
	if h.key == key {
		h.file = file
	}
	h.mu.Unlock()
	return file.ReadAt(buffer, offset)
}
