package releases

import (
	"context"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/stages"
)

const (
	// measuring is how many workers wait for those who are asked about metrics, at most, and measuringOf how many for those of one namespace. Whoever is
	// asked may take a minute, and releases of others go on meanwhile.
	measuring, measuringOf = workers / 2, 2
	// begunWithin is for how long a step asks one after the other. A step has 90 seconds, an answer one minute, and what was found is to be written.
	begunWithin = 20 * time.Second
	// placeAgain is when a place is looked for again.
	placeAgain = time.Second
)

// measurements looks at the metrics that are due, and reports whether it has found anything. What it does not come to stays due.
func (c *Controller) measurements(ctx context.Context, s situation, all []stages.Measure, seen *delivery.Observed, now time.Time) (news bool) {
	var due []stages.Measure
	for _, measure := range all {
		if !measure.At.After(now) {
			due = append(due, measure)
		}
	}
	if len(due) == 0 {
		return false
	}
	free, ok := c.asking.Take(s.app.Namespace)
	if !ok {
		c.queue.AddAfter(cache.MetaObjectToName(s.app), placeAgain)
		return false
	}
	defer free()
	if seen.Measured == nil {
		seen.Measured = map[string][]delivery.Measurement{}
	}
	for i, measure := range due {
		if i > 0 && c.Clock.Since(now) >= begunWithin {
			c.queue.AddAfter(cache.MetaObjectToName(s.app), settle)
			break
		}
		seen.Measured[measure.Stage] = append(seen.Measured[measure.Stage], c.measure(ctx, s, measure))
	}
	return true
}
