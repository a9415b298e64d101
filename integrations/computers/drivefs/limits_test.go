package main

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

func TestAComputerTakesNoDescriptorsOfOthers(t *testing.T) {
	w := newWorld(t)
	w.write("file", "text")
	w.mount(testComputer, testSpace, w.path)
	w.expect("file", "text")
	var err error
	for range maxHandles + 1 {
		var file *os.File
		if file, err = os.Open(w.at("file")); err != nil {
			break
		}
		defer file.Close()
		file.Read(make([]byte, 1))
	}
	expectError(t, err, syscall.ENFILE)
	other := w.dir + "/drive-other"
	w.mount("cmp_other", "spc_other", other)
	must(t, os.WriteFile(other+"/new", []byte("text"), 0o644))
}

func TestNewFilesWaitForThoseThatAreNotSent(t *testing.T) {
	w := mounted(t)
	paused := make(chan struct{})
	w.set(func() { w.paused = paused })
	const more = 100
	done := make(chan error, 1)
	go func() {
		for number := range maxUnsentFiles + more {
			if err := os.WriteFile(w.at(fmt.Sprint(number)), []byte("text"), 0o644); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	w.until("there are as many unsent files as may be", func() bool {
		_, state := w.control("GET", "/", nil)
		mount, _ := state["mounts"].([]any)[0].(map[string]any)
		return mount["pendingFiles"] == float64(maxUnsentFiles)
	})
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	w.set(func() { w.paused = nil })
	close(paused)
	must(t, <-done)
	w.sync()
	if count := len(w.names()); count != maxUnsentFiles+more {
		t.Errorf("there are %d files", count)
	}
}

func (w *world) names() []os.DirEntry {
	entries, err := os.ReadDir(w.path)
	must(w.t, err)
	return entries
}
