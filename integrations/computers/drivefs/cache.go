package main

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"
)

var errWrongContent = errors.New("the content is not the one that was asked for")

// A name that is one part of a path.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,150}$`)

// cache has contents of files on the host's disk, in a folder for each space, so that no space sees another's. The
// contents that were not used for the longest time make room.
type cache struct {
	dir      string
	maxBytes int64

	mu     sync.Mutex
	known  map[string]*list.Element // by path below dir
	recent *list.List               // of *cached; the most recently used is first
	bytes  int64
	coming map[string]*coming
}

type cached struct {
	path string
	size int64
	// This process has made the file, or checked its hash. A power cut may leave another content.
	isChecked bool
}

func openCache(dir string, maxBytes int64) (*cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	c := &cache{dir: dir, maxBytes: maxBytes, known: map[string]*list.Element{}, recent: list.New(),
		coming: map[string]*coming{}}
	type found struct {
		cached
		used time.Time
	}
	var all []found
	spaces, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, space := range spaces {
		files, _ := os.ReadDir(filepath.Join(dir, space.Name()))
		for _, file := range files {
			path := space.Name() + "/" + file.Name()
			info, err := file.Info()
			if err != nil || !plainName.MatchString(file.Name()) {
				os.Remove(filepath.Join(dir, path)) // left by a killed fetch
				continue
			}
			all = append(all, found{cached{path: path, size: info.Size()}, info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b found) int { return a.used.Compare(b.used) })
	for _, each := range all {
		c.note(each.path, each.size, false)
	}
	return c, nil
}

// contentKey names a content. One whose hash the drive does not know is named by its item and version.
func contentKey(it *item) string {
	if len(it.Sha256) == 2*sha256.Size {
		return it.Sha256
	}
	return fmt.Sprintf("%s.%d", it.ID, it.Version)
}

// note adds a file that is there, and makes room for it.
func (c *cache) note(path string, size int64, isChecked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.known[path]; ok {
		c.drop(element)
	}
	c.known[path] = c.recent.PushFront(&cached{path, size, isChecked})
	c.bytes += size
	for c.bytes > c.maxBytes && c.recent.Len() > 1 {
		last := c.recent.Back()
		os.Remove(filepath.Join(c.dir, last.Value.(*cached).path))
		c.drop(last)
	}
}

func (c *cache) drop(element *list.Element) {
	gone := c.recent.Remove(element).(*cached)
	delete(c.known, gone.path)
	c.bytes -= gone.size
}

func (c *cache) has(path string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[path] != nil
}

// find opens a content that is here. It returns nil if it is not.
func (c *cache) find(path string, it *item) *os.File {
	c.mu.Lock()
	element := c.known[path]
	isChecked := false
	if element != nil {
		c.recent.MoveToFront(element)
		isChecked = element.Value.(*cached).isChecked
	}
	c.mu.Unlock()
	if element == nil {
		return nil
	}
	file, err := os.Open(filepath.Join(c.dir, path))
	if err == nil && !isChecked {
		err = check(file, it)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if current := c.known[path]; current == element {
		if err == nil {
			element.Value.(*cached).isChecked = true
			return file
		}
		c.drop(element)
		os.Remove(filepath.Join(c.dir, path))
	}
	if err != nil {
		file.Close()
		return nil
	}
	return file
}

func check(file *os.File, it *item) error {
	hash := sha256.New()
	size, err := io.Copy(hash, file)
	if err == nil && !isContent(it, size, hash.Sum(nil)) {
		err = errWrongContent
	}
	return err
}

func isContent(it *item, size int64, sum []byte) bool {
	return size == it.Size && (len(it.Sha256) != 2*sha256.Size || it.Sha256 == hex.EncodeToString(sum))
}
