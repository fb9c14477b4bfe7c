package connection

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Classes are those of one cluster, as the Runner sees them. It is safe for concurrent use; a nil one keeps nothing.
type Classes struct {
	changed func()

	mu  sync.Mutex
	now *v1alpha1.ClusterClasses
}

// NewClasses returns classes that are not known. changed, which may be nil, is called after every change and must return at once.
func NewClasses(changed func()) *Classes { return &Classes{changed: changed} }

// Set tells what there is, which belongs to the Classes from then on; nil for what is not known.
func (c *Classes) Set(now *v1alpha1.ClusterClasses) {
	if c == nil {
		return
	}
	c.mu.Lock()
	same := equality.Semantic.DeepEqual(c.now, now)
	c.now = now
	c.mu.Unlock()
	if !same && c.changed != nil {
		c.changed()
	}
}

// Get returns what there is, nil while that is not known. It may not be changed.
func (c *Classes) Get() *v1alpha1.ClusterClasses {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}
