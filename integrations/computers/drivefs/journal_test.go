package main

import (
	"os"
	"strings"
	"testing"
)

// What a power cut leaves of a journal is read without what it has damaged.
func TestAJournalAfterAPowerCut(t *testing.T) {
	dir := t.TempDir()
	j, _, err := openJournal(dir)
	must(t, err)
	numbers := map[string]uint64{}
	for _, name := range []string{"whole", "torn data", "no data", "torn entry"} {
		number, file, err := j.newData()
		must(t, err)
		_, err = file.WriteString("content of " + name)
		must(t, err)
		e := &entry{Number: number, Name: name, Size: int64(len("content of " + name))}
		must(t, e.seal(file))
		must(t, j.write(e))
		must(t, file.Close())
		numbers[name] = number
	}
	must(t, os.Truncate(j.dataOf(numbers["torn data"]), 5))
	must(t, os.Remove(j.dataOf(numbers["no data"])))
	must(t, os.Truncate(strings.TrimSuffix(j.dataOf(numbers["torn entry"]), "data")+"json", 5))
	_, file, err := j.newData() // was still being written
	must(t, err)
	must(t, file.Close())
	_, entries, err := openJournal(dir)
	must(t, err)
	if len(entries) != 1 || entries[0].Name != "whole" {
		t.Errorf("the entries are %v", entries)
	}
	if names := len(strings.Fields(namesIn(t, dir))); names != 2 {
		t.Errorf("the folder has %s", namesIn(t, dir))
	}
}

// A file that is written twice leaves one of its contents at any moment, and in the end only the later one.
func TestAnEntryIsForgottenOnceALaterOneIsSynced(t *testing.T) {
	dir := t.TempDir()
	j, _, err := openJournal(dir)
	must(t, err)
	j.isSyncing = true // the test syncs it
	var entries []*entry
	for range 3 {
		number, file, err := j.newData()
		must(t, err)
		must(t, file.Close())
		e := &entry{Number: number, Key: "same"}
		must(t, j.write(e))
		entries = append(entries, e)
	}
	j.replace(entries[0].Number, entries[1].Number)
	j.replace(entries[1].Number, entries[2].Number)
	if _, found, _ := openJournal(dir); len(found) != 3 {
		t.Errorf("there are %d entries before the sync", len(found))
	}
	j.sync()
	if _, found, _ := openJournal(dir); len(found) != 1 || found[0].Number != entries[2].Number {
		t.Errorf("after the sync the entries are %v", found)
	}
	j.replace(entries[2].Number, 9)
	j.remove(9)
	if names := namesIn(t, dir); names != "" {
		t.Errorf("after the last is removed the folder has %s", names)
	}
}
