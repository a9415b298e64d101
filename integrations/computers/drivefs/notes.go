package main

import (
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// notes passes notes to the kernel, one after another and without any lock: the kernel takes a note only when the
// requests for that folder have been answered.
type notes struct {
	mu      sync.Mutex
	waiting []note
	hasMore chan struct{}
	isEnded chan struct{}
}

func newNotes() *notes {
	return &notes{hasMore: make(chan struct{}, 1), isEnded: make(chan struct{})}
}

func (q *notes) add(each note) {
	q.mu.Lock()
	q.waiting = append(q.waiting, each)
	q.mu.Unlock()
	select {
	case q.hasMore <- struct{}{}:
	default:
	}
}

func (q *notes) pass(server *fuse.Server) {
	for {
		select {
		case <-q.hasMore:
		case <-q.isEnded:
			return
		}
		q.mu.Lock()
		waiting := q.waiting
		q.waiting = nil
		q.mu.Unlock()
		for _, each := range waiting {
			switch {
			case each.done != nil:
				close(each.done)
			case each.name == "":
				server.InodeNotify(each.number, 0, 0)
			default:
				server.EntryNotify(each.number, each.name)
			}
		}
	}
}
