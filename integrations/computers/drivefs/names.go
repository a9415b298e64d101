package main

import (
	"crypto/rand"
	"encoding/binary"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	maxNameBytes = 255
	maxDepth     = 100
)

// isName says whether the drive can have a file of this name.
func isName(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= maxNameBytes && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, isRefused)
}

func isRefused(letter rune) bool {
	return letter == '/' || letter == utf8.RuneError || unicode.IsControl(letter)
}

// depth is the number of folders above a node. mu is held.
func (n *node) depth() int {
	depth := 0
	for folder := n.parent; folder != nil; folder = folder.parent {
		depth++
	}
	return depth
}

// keyOf returns the form of a name by which a folder finds it: names that look the same are the same.
func keyOf(name string) string {
	if norm.NFC.IsNormalString(name) {
		return name
	}
	return norm.NFC.String(name)
}

const idLetters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// newItemID makes an id as Atrium makes it: 10 letters of time and 16 of chance. A request that is repeated has the
// same id, so it makes one item.
func newItemID() string {
	var id [26]byte
	milliseconds := uint64(time.Now().UnixMilli())
	for at := 9; at >= 0; at-- {
		id[at] = idLetters[milliseconds%32]
		milliseconds /= 32
	}
	rand.Read(id[10:])
	for at := 10; at < len(id); at++ {
		id[at] = idLetters[id[at]%32]
	}
	return "itm_" + string(id[:])
}

func randomNumber() uint64 {
	var bytes [8]byte
	rand.Read(bytes[:])
	return binary.BigEndian.Uint64(bytes[:])
}
