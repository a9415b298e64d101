package main

import (
	"context"
	"io"
	"net/http"
	"sync"
	"syscall"
)

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
