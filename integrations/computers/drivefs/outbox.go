package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const maxResendPause = 30 * time.Second

// outbox is what a computer has written and the drive does not have yet. It outlives the computer's mount, and this
// process.
type outbox struct {
	computerID string
	spaceID    string // of what an earlier process has left
	backend    *backend
	journal    *journal
	cache      *cache
	stop       context.CancelFunc
	stopped    context.Context

	mu sync.Mutex
	// Entries without a file of a mount: of an earlier process, or of a mount that has ended. The oldest is first.
	left      []*entry
	isSending bool
	isEmpty   chan struct{} // closed while nothing is left
	failure   string
	// The drive as it is mounted, while it is. It hears of each entry that was sent, and has the home for those that never can be.
	mounted *drive
	aside   aside
	isNews  chan struct{} // closed when an entry was sent, or refused
}

func openOutbox(computerID, stageDir string, b *backend, c *cache) (*outbox, error) {
	j, entries, err := openJournal(filepath.Join(stageDir, computerID))
	if err != nil {
		return nil, err
	}
	o := &outbox{computerID: computerID, backend: b, journal: j, cache: c, isEmpty: make(chan struct{}),
		isNews: make(chan struct{})}
	o.stopped, o.stop = context.WithCancel(context.Background())
	close(o.isEmpty)
	if len(entries) > 0 {
		o.spaceID = entries[0].SpaceID
	}
	entries = j.withoutReplaced(entries)
	alignEarlier(entries)
	o.leave(entries)
	return o, nil
}

// withoutReplaced leaves out earlier contents of a file that were never on their way. A killed process had no time to
// forget them.
func (j *journal) withoutReplaced(entries []*entry) (kept []*entry) {
	latest := map[string]*entry{}
	for _, each := range entries { // the oldest is first
		latest[each.Key] = each
	}
	for _, each := range entries {
		if last := latest[each.Key]; each == last || each.MayBeSent {
			kept = append(kept, each)
		} else {
			j.replace(each.Number, last.Number)
		}
	}
	return kept
}

// alignEarlier makes the earlier contents of a file go where its latest one goes. It may have been renamed between them.
// An earlier one is sent at all because it may have been on its way: then the latest is the next version of it.
func alignEarlier(entries []*entry) {
	latest := map[string]*entry{}
	for _, each := range entries { // the oldest is first
		latest[each.Key] = each
	}
	for _, each := range entries {
		last := latest[each.Key]
		each.ItemID, each.BaseVersion = last.ItemID, last.BaseVersion
		each.ParentID, each.Name = last.ParentID, last.Name
	}
}

// leave sends entries in the background until the drive has them.
func (o *outbox) leave(entries []*entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(entries) == 0 {
		return
	}
	if len(o.left) == 0 {
		o.isEmpty = make(chan struct{})
	}
	o.left = append(o.left, entries...)
	if !o.isSending {
		o.isSending = true
		go o.sendLeft()
	}
}

func (o *outbox) sendLeft() {
	for pause := 100 * time.Millisecond; ; {
		o.mu.Lock()
		entries := slices.Clone(o.left)
		o.mu.Unlock()
		if o.sendAll(entries) {
			pause = 100 * time.Millisecond
		}
		o.mu.Lock()
		if len(o.left) == 0 {
			o.isSending = false
			close(o.isEmpty)
			o.mu.Unlock()
			return
		}
		o.mu.Unlock()
		select {
		case <-o.stopped.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, maxResendPause)
	}
}

// sendAll tries once to send these entries, several files at a time, but those of one file in their order. It returns
// whether anything was sent.
func (o *outbox) sendAll(entries []*entry) bool {
	files := map[string][]*entry{}
	for _, each := range entries { // the oldest is first
		files[each.Key] = append(files[each.Key], each)
	}
	var all sync.WaitGroup
	var isAnySent atomic.Bool
	turns := make(chan struct{}, maxSmallSends)
	for _, contents := range files {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			for _, each := range contents {
				it, err := o.journal.put(o.stopped, o.backend, each)
				if err != nil {
					o.refused(each, err)
					return // a later content waits for this one
				}
				isAnySent.Store(true)
				o.sent(each, it)
			}
		})
	}
	all.Wait()
	return isAnySent.Load()
}

// sent makes a later content of the same file the next version of what was sent, and only then forgets the entry.
func (o *outbox) sent(e *entry, it item) {
	o.mu.Lock()
	mounted := o.mounted
	o.mu.Unlock()
	if mounted != nil {
		mounted.hear(it) // before anybody who waits for the entry goes on
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, later := range o.left {
		if later.Key == e.Key && later.Number > e.Number {
			if o.journal.amend(later, func() { later.ItemID, later.BaseVersion = it.ID, it.Version }) != nil {
				return // it is sent again, which changes nothing
			}
		}
	}
	o.drop(e)
	o.failure = ""
	o.finish(e, it)
}

// finish forgets an entry that was sent, and keeps its content for readers.
func (o *outbox) finish(e *entry, it item) {
	o.journal.forgetReplaced(e.Number) // while this one is whole: otherwise a crash would leave only them
	if it.Size == e.Size {
		o.cache.take(e.SpaceID, &it, o.journal.dataOf(e.Number))
	}
	o.journal.remove(e.Number)
}

// fail notes why something could not be sent. It has no names: it is shown to operators.
func (o *outbox) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failure = "The worker does not answer."
	var refused *refusal
	if errors.As(err, &refused) {
		o.failure = refused.Error()
	}
}

func (o *outbox) succeed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failure = ""
}

// settle waits until nothing of an earlier mount is left, or the context ends.
func (o *outbox) settle(ctx context.Context) {
	o.mu.Lock()
	isEmpty := o.isEmpty
	o.mu.Unlock()
	select {
	case <-isEmpty:
	case <-ctx.Done():
	}
}

type unsent struct {
	PendingFiles      int    `json:"pendingFiles"`
	PendingBytes      int64  `json:"pendingBytes"`
	OldestPendingAtMs *int64 `json:"oldestPendingAtMs"`
	Error             string `json:"error,omitempty"`
}

func (u *unsent) add(bytes, sinceMs int64) {
	u.PendingFiles++
	u.PendingBytes += bytes
	if u.OldestPendingAtMs == nil || *u.OldestPendingAtMs > sinceMs {
		u.OldestPendingAtMs = &sinceMs
	}
}

func (o *outbox) unsent() unsent {
	o.mu.Lock()
	defer o.mu.Unlock()
	result := unsent{Error: o.failure}
	if o.failure == "" {
		result.Error = o.aside.notice()
	}
	for _, each := range o.left {
		result.add(each.Size, each.ModifiedAtMs)
	}
	return result
}
