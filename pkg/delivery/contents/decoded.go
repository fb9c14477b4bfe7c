package contents

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/lru"
)

const (
	// mostDecoded bounds what is kept decoded, in bytes of JSON. As objects it takes some five times as much memory.
	mostDecoded = 32 << 20
	// mostHeads bounds of how many revisions something is kept.
	mostHeads = 4096
)

// known is what has been proven and decoded of a revision. It is not changed any more once it is kept, so that whoever has it may read it without
// a lock.
type known struct {
	loaded
	targets map[string]*target
}

// target is what a revision has for one of its targets.
type target struct {
	// hashes are those of its objects in their order, proven by the revision.
	hashes []string
	// byName are the hashes of those that have been read, and whole tells that these are all.
	byName map[objectName]string
	whole  bool
}

type objectName struct {
	schema.GroupKind
	namespace, name string
}

// get returns a manifest by its hash, or why it could not be read.
func (k *known) get(hash string) (Content, error) {
	if content, ok := k.contents[hash]; ok {
		return content, nil
	}
	if err := k.errs[hash]; err != nil {
		return Content{}, err
	}
	return Content{}, fmt.Errorf("manifest %.12s %w", hash, ErrMissing)
}

// lacking returns those hashes of which nothing is known.
func (k *known) lacking(hashes []string) sets.Set[string] {
	out := sets.New[string]()
	for _, hash := range hashes {
		if _, ok := k.contents[hash]; !ok {
			out.Insert(hash)
		}
	}
	return out
}

// with returns what is known together with what has just been read, for the caller to index.
func (k *known) with(found loaded) *known {
	out := &known{loaded: loaded{contents: found.contents, errs: found.errs, size: k.size + found.size}, targets: map[string]*target{}}
	maps.Copy(out.contents, k.contents)
	maps.Copy(out.targets, k.targets)
	return out
}

// index adds a target that has these objects. Those that have the same ones share what is known of them.
func (k *known) index(name string, hashes []string) {
	for _, other := range k.targets {
		if other.whole && slices.Equal(other.hashes, hashes) {
			k.targets[name] = other
			return
		}
	}
	out := &target{hashes: hashes, byName: make(map[objectName]string, len(hashes)), whole: true}
	for _, hash := range hashes {
		content, read := k.contents[hash]
		if !read {
			out.whole = false
			continue
		}
		called := objectName{content.Object.GroupVersionKind().GroupKind(), content.Object.GetNamespace(), content.Object.GetName()}
		if _, twice := out.byName[called]; !twice {
			out.byName[called] = hash
		}
	}
	k.targets[name] = out
}

// decoded keeps what is known of revisions, by the UIDs of their heads, which never change. Those that were not asked for the longest go first.
type decoded struct {
	most int

	mu    sync.Mutex
	heads *lru.Cache
	size  int
}

func newDecoded(most int) *decoded {
	out := &decoded{most: most}
	// It is called by put alone, which holds the lock.
	out.heads = lru.NewWithEvictionFunc(mostHeads, func(_ lru.Key, value any) { out.size -= value.(*known).size })
	return out
}

// get returns what is known of a revision, which may be nothing.
func (d *decoded) get(head types.UID) *known {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found, ok := d.heads.Get(head); ok {
		return found.(*known)
	}
	return &known{}
}

// put keeps what is known of a revision. If another has added something in the meantime, one of them is read again later. What could not be read is
// not kept: it may come.
func (d *decoded) put(head types.UID, now *known) {
	if head == "" || len(now.contents) == 0 {
		return
	}
	kept := &known{loaded: loaded{contents: now.contents, size: now.size}, targets: now.targets}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heads.Remove(head)
	d.heads.Add(head, kept)
	d.size += kept.size
	for d.size > d.most && d.heads.Len() > 1 {
		d.heads.RemoveOldest()
	}
}
