package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// An entry of the journal: a content that is on this host's disk and shall be on the drive. Its file NUMBER.json names
// what it is for, and NUMBER.data is the content. Data without an entry is of a file that was still being written, and
// means nothing after a crash.
type entry struct {
	Number     uint64 `json:"-"`
	ComputerID string `json:"computerId"`
	SpaceID    string `json:"spaceId"`
	// The same for all contents of one file, so that a later one follows the earlier one.
	Key string `json:"key"`
	// Empty: a new file.
	ItemID       string `json:"itemId"`
	BaseVersion  int64  `json:"baseVersion"`
	ParentID     string `json:"parentId"`
	Name         string `json:"name"`
	ModifiedAtMs int64  `json:"modifiedAtMs"`
	Executable   bool   `json:"executable"`
	Session      string `json:"session"`
	Size         int64  `json:"size"`
	// Its request was sent, and the drive may have it although there was no answer.
	MayBeSent bool `json:"mayBeSent,omitempty"`
	// Since when the worker has refused it for good. Guarded by the outbox's mu.
	refusedAt time.Time
	// The hash of the data. Empty if the data was synced before the entry was written.
	Sha256 string `json:"sha256"`
}

const (
	// An entry that was not sent by then is synced, with all others that wait for it. So a process that is killed loses
	// nothing of a closed file, and a power cut at most this time. Most entries are sent before: a sync of each would make
	// a copy of many small files fifty times as slow.
	syncDelay = 100 * time.Millisecond
	// The data of a larger file is synced before its entry is written. That of a smaller one is checked by its hash.
	maxHashedBytes = 8 << 20
	// The host's disk keeps this much free. What the drive does not take fast enough is refused before.
	reserveBytes = 1 << 30
	roomPause    = time.Second
)

// journal is one computer's folder of entries. Only this process uses it.
type journal struct {
	dir     string
	numbers atomic.Uint64
	// Guards the fields of entries that are sent.
	amending sync.Mutex

	mu        sync.Mutex
	unsynced  map[uint64]bool
	replaced  map[uint64][]uint64 // earlier entries of the same file, by the one that is not synced yet
	isSyncing bool
	roomKnown time.Time
	room      int64 // in bytes
}

// openJournal reads the entries of a computer, the oldest first.
func openJournal(dir string) (*journal, []*entry, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	j := &journal{dir: dir, unsynced: map[uint64]bool{}, replaced: map[uint64][]uint64{}}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	var entries []*entry
	isEntered := map[string]bool{}
	for _, file := range files {
		number, isEntry := strings.CutSuffix(file.Name(), ".json")
		if !isEntry {
			continue
		}
		each, err := j.read(number)
		if err != nil {
			return nil, nil, fmt.Errorf("%s is not readable: %w", file.Name(), err)
		}
		if each == nil { // a power cut came before it was synced
			os.Remove(filepath.Join(dir, file.Name()))
			continue
		}
		isEntered[number+".data"] = true
		entries = append(entries, each)
		j.numbers.Store(max(j.numbers.Load(), each.Number))
	}
	for _, file := range files {
		if !isEntered[file.Name()] && !strings.HasSuffix(file.Name(), ".json") {
			os.Remove(filepath.Join(dir, file.Name()))
		}
	}
	slices.SortFunc(entries, func(a, b *entry) int { return int(a.Number) - int(b.Number) })
	return j, entries, nil
}

// read returns an entry, or nil if not all of it has reached the disk.
func (j *journal) read(name string) (*entry, error) {
	e := &entry{}
	text, err := os.ReadFile(filepath.Join(j.dir, name+".json"))
	if err != nil {
		return nil, err
	}
	e.Number, _ = strconv.ParseUint(name, 16, 64)
	if json.Unmarshal(text, e) != nil || e.Number == 0 {
		return nil, nil
	}
	data, err := os.Open(j.dataOf(e.Number))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer data.Close()
	if e.Sha256 == "" {
		return e, nil
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, data); err != nil {
		return nil, err
	}
	if hex.EncodeToString(hash.Sum(nil)) != e.Sha256 {
		return nil, nil
	}
	return e, nil
}

// seal prepares data for its entry.
func (e *entry) seal(data *os.File) error {
	if e.Size > maxHashedBytes {
		return data.Sync()
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(data, 0, e.Size)); err != nil {
		return err
	}
	e.Sha256 = hex.EncodeToString(hash.Sum(nil))
	return nil
}

func (j *journal) dataOf(number uint64) string { return fmt.Sprintf("%s/%016x.data", j.dir, number) }

// newData makes an empty file for a content.
func (j *journal) newData() (uint64, *os.File, error) {
	number := j.numbers.Add(1)
	file, err := os.OpenFile(j.dataOf(number), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	return number, file, err
}
