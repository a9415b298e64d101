package main

import (
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// What the kernel shall no longer know: the content and attributes of a node, or one name in a folder.
type note struct {
	number uint64
	name   string
	done   chan struct{} // nothing of this, but closed when the kernel has all earlier notes
}

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

// tellOfNode makes the kernel ask again for a node. mu is held.
func (d *drive) tellOfNode(n *node) {
	if n.lookups > 0 || n == d.root {
		d.notes.add(note{number: n.number})
	}
}

// tellOfName makes the kernel ask again for a name, and list its folder again. mu is held.
func (d *drive) tellOfName(parent *node, name string) {
	if parent == nil || !isName(name) {
		return
	}
	parent.isStale = true
	parent.modified = time.Now()
	if parent.lookups > 0 || parent == d.root {
		d.notes.add(note{number: parent.number, name: name})
		d.notes.add(note{number: parent.number})
	}
}

// tellOfAll makes the kernel forget everything. mu is held.
func (d *drive) tellOfAll() {
	for _, n := range d.nodes {
		if n.lookups == 0 && n != d.root {
			continue
		}
		n.isStale = true
		d.notes.add(note{number: n.number})
		for _, child := range n.children {
			if child.lookups > 0 {
				d.notes.add(note{number: n.number, name: child.name})
			}
		}
	}
}
