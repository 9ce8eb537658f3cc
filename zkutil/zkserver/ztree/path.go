package ztree

import (
	"strings"
	"unicode/utf8"
)

// validPath is ZooKeeper's rule for paths: absolute, no empty, "." or ".." names, no trailing slash, no
// control characters, surrogates, private-use characters or specials.
func validPath(p string) bool {
	if p == "/" {
		return true
	}
	if p == "" || p[0] != '/' || p[len(p)-1] == '/' {
		return false
	}
	start := 1 // of the current name
	for i := 1; i <= len(p); i++ {
		if i < len(p) && p[i] != '/' {
			if p[i] < 0x20 || p[i] == 0x7f {
				if p[i] != 0x1f { // ZooKeeper lets this one through
					return false
				}
			}
			continue
		}
		if name := p[start:i]; name == "" || name == "." || name == ".." {
			return false
		}
		start = i + 1
	}
	return validRunes(p)
}

func validRunes(p string) bool {
	for i := 0; i < len(p); {
		if p[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(p[i:])
		if r == utf8.RuneError && size == 1 || r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 && r <= 0xffff {
			return false
		}
		i += size
	}
	return true
}

// parentOf is the lenient first check of create and delete; the full check comes after the ACLs, as in
// ZooKeeper, so that errors come in the same order.
func parentOf(path string) (string, bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 || strings.IndexByte(path, 0) >= 0 {
		return "", false
	}
	if i == 0 {
		return "/", true
	}
	return path[:i], true
}

func special(path string) bool {
	switch path {
	case "", "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config":
		return true
	}
	return false
}
