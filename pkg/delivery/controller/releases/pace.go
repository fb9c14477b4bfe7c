package releases

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

const (
	// settle is how long news of an application wait for others: a rollout has many in a second.
	settle = 100 * time.Millisecond
	// perObject is how much longer they wait for each object of the application. All of them are looked at then, and that takes less than a quarter of it.
	perObject = 200 * time.Microsecond
	// longest is how long news wait at most.
	longest = 3 * time.Second
)

// pace has large applications be looked at less often than small ones.
type pace struct {
	mu sync.Mutex
	// objects are how many objects applications have that were looked at.
	objects map[cache.ObjectName]int
}

// of is how long news of an application wait beside settle.
func (p *pace) of(application cache.ObjectName) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return min(time.Duration(p.objects[application])*perObject, longest)
}

// note remembers how many objects an application has, none for one that is gone.
func (p *pace) note(application cache.ObjectName, objects int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.objects == nil {
		p.objects = map[cache.ObjectName]int{}
	}
	if p.objects[application] = objects; objects == 0 {
		delete(p.objects, application)
	}
}
