package main

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
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

// A content that is being fetched.
type coming struct {
	done chan struct{}
	err  error
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

// get opens a content, which it fetches if it is not here. Callers who want the same content wait for one fetch.
func (c *cache) get(ctx context.Context, spaceID string, it item, fetch func(context.Context) (*http.Response, error),
) (*os.File, error) {
	path := spaceID + "/" + contentKey(&it)
	if !plainName.MatchString(spaceID) || !plainName.MatchString(contentKey(&it)) {
		return nil, syscall.EIO
	}
	for {
		if file := c.find(path, &it); file != nil {
			return file, nil
		}
		c.mu.Lock()
		other := c.coming[path]
		own := &coming{done: make(chan struct{})}
		if other == nil {
			c.coming[path] = own
		}
		c.mu.Unlock()
		if other != nil {
			select {
			case <-other.done:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			if other.err != nil && !errors.Is(other.err, syscall.EINTR) {
				return nil, other.err
			}
			continue
		}
		var file *os.File
		own.err = patiently(ctx, func(ctx context.Context) (err error) {
			file, err = c.fetch(ctx, path, &it, fetch)
			return err
		})
		c.mu.Lock()
		delete(c.coming, path)
		c.mu.Unlock()
		close(own.done)
		return file, own.err
	}
}

func (c *cache) fetch(ctx context.Context, path string, it *item, fetch func(context.Context) (*http.Response, error),
) (*os.File, error) {
	response, err := fetch(ctx)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	file, err := c.temporary(path)
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(file, hash), io.LimitReader(response.Body, it.Size+1))
	if err == nil && !isContent(it, size, hash.Sum(nil)) {
		err = errWrongContent
	}
	if err == nil {
		err = os.Rename(file.Name(), filepath.Join(c.dir, path))
	}
	if err != nil {
		os.Remove(file.Name())
		file.Close()
		return nil, err
	}
	c.note(path, size, true)
	return file, nil
}

func (c *cache) temporary(path string) (*os.File, error) {
	folder := filepath.Join(c.dir, filepath.Dir(path))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(fmt.Sprintf("%s/.%016x", folder, randomNumber()), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
}

// take moves a file into the cache, for example one that was sent. It may stay away: the cache is no promise.
func (c *cache) take(spaceID string, it *item, from string) {
	path := spaceID + "/" + contentKey(it)
	if !plainName.MatchString(spaceID) || !plainName.MatchString(contentKey(it)) {
		return
	}
	if os.MkdirAll(filepath.Join(c.dir, spaceID), 0o700) == nil && os.Rename(from, filepath.Join(c.dir, path)) == nil {
		c.note(path, it.Size, false)
	}
}
