package main

import (
	"slices"
	"strings"
	"sync"
)

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
