package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"syscall"
	"time"
)

// amend changes an entry that is there, also while it is sent.
func (j *journal) amend(e *entry, change func()) error {
	j.amending.Lock()
	defer j.amending.Unlock()
	change()
	return j.write(e)
}

// write writes an entry, or replaces one that is there.
func (j *journal) write(e *entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s/%016x", j.dir, e.Number)
	if err = os.WriteFile(name+".new", text, 0o600); err == nil {
		err = os.Rename(name+".new", name+".json")
	}
	if err == nil {
		j.syncSoon(e.Number)
	}
	return err
}

// remove forgets an entry and its data, and those that it has replaced.
func (j *journal) remove(number uint64) {
	j.mu.Lock()
	replaced := j.replaced[number]
	delete(j.replaced, number)
	delete(j.unsynced, number)
	j.mu.Unlock()
	for _, each := range append(replaced, number) {
		os.Remove(fmt.Sprintf("%s/%016x.json", j.dir, each)) // first: data without an entry means nothing
		os.Remove(j.dataOf(each))
	}
}

// replace forgets an entry once a later one of the same file is synced: a power cut leaves one of them.
func (j *journal) replace(old, later uint64) {
	j.mu.Lock()
	j.replaced[later] = append(append(j.replaced[later], j.replaced[old]...), old)
	delete(j.replaced, old)
	delete(j.unsynced, old)
	j.mu.Unlock()
	j.syncSoon(later)
}

// forgetReplaced removes what a synced entry has replaced.
func (j *journal) forgetReplaced(number uint64) {
	j.mu.Lock()
	replaced := j.replaced[number]
	delete(j.replaced, number)
	j.mu.Unlock()
	for _, each := range replaced {
		j.remove(each)
	}
}

// hasRoom says whether the host's disk may take so many bytes more.
func (j *journal) hasRoom(bytes int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if time.Since(j.roomKnown) > roomPause {
		var stat syscall.Statfs_t
		j.room = math.MaxInt64
		if syscall.Statfs(j.dir, &stat) == nil {
			block := uint64(stat.Bsize)
			j.room = int64(stat.Bavail*block) - int64(min(reserveBytes, stat.Blocks*block/10))
		}
		j.roomKnown = time.Now()
	}
	return j.room > bytes
}

func (j *journal) syncSoon(number uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unsynced[number] = true
	if !j.isSyncing {
		j.isSyncing = true
		time.AfterFunc(syncDelay, j.sync)
	}
}

func (j *journal) sync() {
	for {
		j.mu.Lock()
		numbers := slices.Sorted(maps.Keys(j.unsynced))
		clear(j.unsynced)
		j.isSyncing = len(numbers) > 0
		j.mu.Unlock()
		if len(numbers) == 0 {
			return
		}
		for _, number := range numbers {
			for _, path := range []string{j.dataOf(number), fmt.Sprintf("%s/%016x.json", j.dir, number)} {
				noteFailure(syncPath(path))
			}
		}
		noteFailure(syncPath(j.dir))
		for _, number := range numbers {
			j.forgetReplaced(number)
		}
	}
}

func noteFailure(err error) {
	if err != nil && !errors.Is(err, os.ErrNotExist) { // sent meanwhile
		fmt.Fprintf(os.Stderr, "The journal could not be synced: %v\n", err)
	}
}

func syncPath(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Sync()
}
