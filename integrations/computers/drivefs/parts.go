package main

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"syscall"
)

// parts are those of large files that the programs of one computer read lately. They cannot be checked, since the hash is
// one of the whole. However many files are open, they take no more than keptParts.
type parts struct {
	drive *drive
	// One place for each part that is fetched.
	fetches chan struct{}

	mu    sync.Mutex
	known map[partKey]*part
	order []partKey // the most recently used is last
}

type partKey struct {
	content string
	index   int64
}

type part struct {
	done  chan struct{}
	bytes []byte
	err   error
}

func newParts(d *drive) *parts {
	return &parts{drive: d, fetches: make(chan struct{}, keptParts/2), known: map[partKey]*part{}}
}

func (p *parts) readAt(ctx context.Context, it item, buffer []byte, offset int64) (count int, err error) {
	for count < len(buffer) && offset < it.Size {
		index := offset / partBytes
		each := p.part(it, index)
		select {
		case <-each.done:
		case <-ctx.Done():
			return count, context.Cause(ctx)
		}
		if each.err != nil {
			return count, each.err
		}
		if (index+1)*partBytes < it.Size {
			p.part(it, index+1) // programs mostly read on
		}
		copied := copy(buffer[count:], each.bytes[offset-index*partBytes:])
		count += copied
		offset += int64(copied)
	}
	return count, nil
}

// part returns a part that is here or coming.
func (p *parts) part(it item, index int64) *part {
	key := partKey{contentKey(&it), index}
	p.mu.Lock()
	defer p.mu.Unlock()
	each := p.known[key]
	if each != nil {
		p.order = slices.DeleteFunc(p.order, func(other partKey) bool { return other == key })
	} else {
		each = &part{done: make(chan struct{})}
		p.known[key] = each
		go p.fetch(it, key, each)
	}
	p.order = append(p.order, key)
	if len(p.order) > keptParts {
		delete(p.known, p.order[0])
		p.order = p.order[1:]
	}
	return each
}

func (p *parts) fetch(it item, key partKey, each *part) {
	defer close(each.done)
	select {
	case p.fetches <- struct{}{}:
		defer func() { <-p.fetches }()
	case <-p.drive.ended.Done():
		each.err = syscall.EIO
		return
	}
	from := key.index * partBytes
	length := min(partBytes, it.Size-from)
	each.err = patiently(p.drive.ended, func(ctx context.Context) error {
		response, err := p.drive.outbox.backend.content(ctx, it, from, length)
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
	if each.err == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known[key] == each {
		delete(p.known, key)
		p.order = slices.DeleteFunc(p.order, func(other partKey) bool { return other == key })
	}
}
