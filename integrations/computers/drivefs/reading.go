package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

const (
	// A larger file is read by parts, unless its content is here.
	maxWholeBytes = 64 << 20
	partBytes     = 4 << 20
	keptParts     = 4
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
		h.file, h.ranges, h.key = nil, nil, key // others may still read from the old file, so it is not closed here
	}
	file, parts := h.file, h.ranges
	h.mu.Unlock()
	if file != nil {
		return file.ReadAt(buffer, offset)
	}
	ctx, stop := interruptible(cancel)
	defer stop()
	if it.Size > maxWholeBytes && !d.cache.has(d.spec.SpaceID+"/"+key) {
		if parts == nil {
			parts = &ranges{drive: d, item: it, parts: map[int64]*part{}}
			h.mu.Lock()
			h.ranges = parts
			h.mu.Unlock()
		}
		return parts.readAt(ctx, buffer, offset)
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

// ranges reads a large file by parts. They cannot be checked, since the hash is one of the whole.
type ranges struct {
	drive *drive
	item  item
	mu    sync.Mutex
	parts map[int64]*part
	order []int64
}

type part struct {
	done  chan struct{}
	bytes []byte
	err   error
}

func (r *ranges) readAt(ctx context.Context, buffer []byte, offset int64) (count int, err error) {
	for count < len(buffer) && offset < r.item.Size {
		index := offset / partBytes
		each := r.part(index)
		if (index+1)*partBytes < r.item.Size {
			r.part(index + 1) // programs mostly read on
		}
		select {
		case <-each.done:
		case <-ctx.Done():
			return count, context.Cause(ctx)
		}
		if each.err != nil {
			return count, each.err
		}
		copied := copy(buffer[count:], each.bytes[offset-index*partBytes:])
		count += copied
		offset += int64(copied)
	}
	return count, nil
}

// part returns a part that is here or coming.
func (r *ranges) part(index int64) *part {
	r.mu.Lock()
	defer r.mu.Unlock()
	if each := r.parts[index]; each != nil {
		return each
	}
	each := &part{done: make(chan struct{})}
	r.parts[index] = each
	r.order = append(r.order, index)
	if len(r.order) > keptParts {
		delete(r.parts, r.order[0])
		r.order = r.order[1:]
	}
	go func() {
		defer close(each.done)
		from := index * partBytes
		length := min(partBytes, r.item.Size-from)
		each.err = patiently(r.drive.ended, func(ctx context.Context) error {
			response, err := r.drive.outbox.backend.content(ctx, r.item, from, length)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			if response.StatusCode != http.StatusPartialContent {
				return syscall.EIO
			}
			each.bytes = make([]byte, length)
			_, err = io.ReadFull(response.Body, each.bytes)
			return err
		})
		if each.err != nil {
			r.mu.Lock()
			delete(r.parts, index)
			r.mu.Unlock()
		}
	}()
	return each
}

// prefetchBeside fetches the small files that follow in a file's folder in the background, a bounded number at once.
func (d *drive) prefetchBeside(n *node) {
	d.mu.Lock()
	defer d.mu.Unlock()
	folder := n.parent
	if folder == nil || folder.isPrefetching {
		return
	}
	all := folder.list()
	from, _ := slices.BinarySearchFunc(all, n.name, func(each *node, name string) int {
		return strings.Compare(each.name, name)
	})
	var wanted []item
	bytes := int64(0)
	for _, each := range all[from:] {
		isWanted := each != n && each.isFile() && each.item.ID != "" && each.item.Size > 0 && each.item.Size <= smallBytes &&
			!each.writing.isUnsent() && !d.cache.has(d.spec.SpaceID+"/"+contentKey(&each.item))
		if !isWanted {
			continue
		}
		if bytes += each.item.Size; bytes > maxPrefetchBytes || len(wanted) == maxPrefetchFiles {
			break
		}
		wanted = append(wanted, each.item)
	}
	if len(wanted) == 0 {
		return
	}
	folder.isPrefetching = true
	go func() {
		d.prefetch(wanted)
		d.mu.Lock()
		defer d.mu.Unlock()
		folder.isPrefetching = false
	}()
}

func (d *drive) prefetch(wanted []item) {
	queue := make(chan item, len(wanted))
	for _, it := range wanted {
		queue <- it
	}
	close(queue)
	var all sync.WaitGroup
	for range prefetchers {
		all.Go(func() {
			for it := range queue {
				if file, err := d.content(d.ended, it); err == nil {
					file.Close()
				}
			}
		})
	}
	all.Wait()
}
