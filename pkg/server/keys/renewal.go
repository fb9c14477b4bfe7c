package keys

import (
	"context"
	"fmt"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// renewalLook bounds how long nobody looks: timers stand still while a machine is suspended.
	renewalLook = time.Hour
	// renewalRetry is how soon a renewal that failed is tried again.
	renewalRetry = time.Minute
)

// KeepCurrent renews leaf certificates before they end, until ctx does. The server reads the files again when they change. renewed is
// called after each renewal, for whatever else has the certificates in it.
func (p Store) KeepCurrent(ctx context.Context, c clock.Clock, names certutil.AltNames, renewed func() error) error {
	owed := false
	for ctx.Err() == nil {
		now := c.Now()
		due, err := p.renewalDue()
		if err != nil || owed || now.After(due) {
			if err = p.Ensure(now, names); err == nil {
				err = renewed()
			}
			if owed = err != nil; !owed {
				klog.FromContext(ctx).Info("Certificates renewed", "dir", p.Dir)
				continue
			}
			klog.FromContext(ctx).Error(err, "Cannot renew the certificates; trying again", "dir", p.Dir, "delay", renewalRetry)
			due = now.Add(renewalRetry)
		}
		timer := c.NewTimer(min(renewalLook, max(time.Second, due.Sub(now))))
		select {
		case <-ctx.Done():
		case <-timer.C():
		}
		timer.Stop()
	}
	return nil
}

// renewalDue is when the next leaf certificate is to be renewed.
func (p Store) renewalDue() (due time.Time, err error) {
	for _, name := range [...]string{ServingCert, adminCert, FrontProxyCert} {
		certs, err := certutil.CertsFromFile(p.Cert(name))
		if err != nil {
			return time.Time{}, fmt.Errorf("certificate %s: %w", p.Cert(name), err)
		}
		if at := certs[0].NotAfter.Add(-p.renewBefore()); due.IsZero() || at.Before(due) {
			due = at
		}
	}
	return due, nil
}
