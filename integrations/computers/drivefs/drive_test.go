package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestContentsOfTheDriveAreFiles(t *testing.T) {
	w := mounted(t)
	w.write("notes.txt", "hello")
	w.write("folder/deep/file", strings.Repeat("x", 300_000))
	w.expect("notes.txt", "hello")
	w.expect("folder/deep/file", strings.Repeat("x", 300_000))
	if names := namesIn(t, w.path); names != "folder notes.txt" {
		t.Errorf("the names are %s", names)
	}
	info, err := os.Stat(w.at("notes.txt"))
	must(t, err)
	if info.Size() != 5 || info.Mode() != 0o644 || info.ModTime().UnixMilli() != w.find("notes.txt").ModifiedAtMs {
		t.Errorf("the file is %v %v %v", info.Size(), info.Mode(), info.ModTime())
	}
}

func TestAMountThatIsOrderedAgainStays(t *testing.T) {
	w := mounted(t)
	file, err := os.Create(w.at("file"))
	must(t, err)
	w.order(testComputer, testSpace, w.path, &rootAnswer{})
	_, err = file.WriteString("whole")
	must(t, err)
	must(t, file.Close())
	w.order(testComputer, testSpace, w.path, nil)
	w.expect("file", "whole")
	w.sync()
	w.expectOnDrive("file", "whole")
}

func TestChangesFromElsewhereAreSeen(t *testing.T) {
	w := mounted(t)
	w.write("file", "one")
	w.expect("file", "one")
	_, err := os.Stat(w.at("new"))
	expectError(t, err, syscall.ENOENT)
	w.write("file", "two, longer")
	w.write("new", "made")
	w.until("the content is the new one", func() bool { return w.read("file") == "two, longer" })
	w.until("the new file is there", func() bool { return w.read("new") == "made" })
	w.until("the listing is the new one", func() bool { return namesIn(t, w.path) == "file new" })
	w.set(func() {
		f := w.named(rootID, "new")
		f.Name = "renamed"
		w.touch(f)
		w.fake.named(rootID, "file").Live = false
	})
	w.set(func() {
		for _, it := range w.items {
			if it.Name == "file" {
				w.touch(it)
			}
		}
	})
	w.until("one file is renamed and the other gone", func() bool { return namesIn(t, w.path) == "renamed" })
	w.expect("renamed", "made")
	w.set(func() { w.resets = true })
	w.write("after", "reset")
	w.until("the drive is listed again", func() bool { return w.read("after") == "reset" })
}

func TestAFolderOf100000Files(t *testing.T) {
	w := newWorld(t)
	w.set(func() {
		folder := w.add(rootID, "many", "folder")
		for number := range 100_000 {
			w.add(folder.ID, fmt.Sprintf("file-%06d", number), "file")
		}
	})
	w.mount(testComputer, testSpace, w.path)
	folder, err := os.Open(w.at("many"))
	must(t, err)
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	must(t, err)
	seen := map[string]bool{}
	for _, name := range names {
		seen[name] = true
	}
	if len(names) != 100_000 || len(seen) != 100_000 {
		t.Errorf("the folder has %d names, %d of them different", len(names), len(seen))
	}
	if pages := w.count("GET /children"); pages != 21 {
		t.Errorf("it took %d requests", pages)
	}
}

func TestARenameOverAFileThatTheDriveHasSendsThatToTheTrash(t *testing.T) {
	w := mounted(t)
	target, source := w.write("target", "old"), w.write("source", "new")
	must(t, os.Rename(w.at("source"), w.at("target")))
	w.expect("target", "new")
	w.expectOnDrive("target", "new")
	if w.find("target").ID != source.ID || target.Live || w.find("source") != nil {
		t.Error("the target did not go to the trash")
	}
}

func TestAppsAndRepositories(t *testing.T) {
	w := newWorld(t)
	w.set(func() {
		app := w.add(rootID, "shop", "app")
		w.add("app:"+app.ID, "main.py", "file")
		repository := w.add(rootID, "code", "repository")
		repository.Target = "/home/user/repositories/code"
	})
	w.mount(testComputer, testSpace, w.path)
	if names := namesIn(t, w.at("shop")); names != "main.py" {
		t.Errorf("the app has %s", names)
	}
	w.save("shop/new.py", "print()")
	w.sync()
	w.set(func() {
		if w.named("app:"+w.named(rootID, "shop").ID, "new.py") == nil {
			t.Error("the app has no new file")
		}
	})
	if target, err := os.Readlink(w.at("code")); err != nil || target != "/home/user/repositories/code" {
		t.Errorf("the repository leads to %q %v", target, err)
	}
}

func TestALargeFileIsReadByParts(t *testing.T) {
	w := mounted(t)
	text := strings.Repeat("0123456789abcdef", (maxWholeBytes+partBytes)/16) + "end"
	w.write("large", text)
	file, err := os.Open(w.at("large"))
	must(t, err)
	defer file.Close()
	end := make([]byte, 5)
	_, err = file.ReadAt(end, int64(len(text)-5))
	must(t, err)
	if string(end) != "efend" {
		t.Errorf("it ends with %q", end)
	}
	if all, err := io.ReadAll(file); err != nil || string(all) != text {
		t.Errorf("%d bytes were read: %v", len(all), err)
	}
}
