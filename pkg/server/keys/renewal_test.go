package keys

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/klog/v2/ktesting"
	testingclock "k8s.io/utils/clock/testing"
)

// keptCurrent runs keepCurrent until the test ends. What is received from renewed is what the call of that name returns.
func keptCurrent(t *testing.T, p Store, clock *testingclock.FakeClock) (renewed chan error) {
	_, ctx := ktesting.NewTestContext(t)
	ctx, cancel := context.WithCancel(ctx)
	renewed = make(chan error)
	ended := make(chan error, 1)
	go func() {
		ended <- p.KeepCurrent(ctx, clock, served, func() error {
			select {
			case err := <-renewed:
				return err
			case <-ctx.Done():
				return nil
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
	return renewed
}

// pass lets time pass until somebody receives err.
func pass(t *testing.T, clock *testingclock.FakeClock, step time.Duration, renewed chan error, err error) {
	t.Helper()
	for {
		select {
		case renewed <- err:
			return
		case <-t.Context().Done():
			t.Fatal("nothing was renewed")
		default:
			if clock.HasWaiters() {
				clock.Step(step)
			}
			runtime.Gosched()
		}
	}
}

func TestCertificatesAreRenewedWhileTheServerRuns(t *testing.T) {
	p := Store{Dir: t.TempDir(), lifetime: 3 * time.Hour}
	before := ensured(t, p, today, served)
	serving, err := dynamiccertificates.NewDynamicServingContentFromFiles("serving", p.Cert(ServingCert), p.Key(ServingCert))
	if err != nil {
		t.Fatal(err)
	}
	clock := testingclock.NewFakeClock(today)
	renewed := keptCurrent(t, p, clock)
	leaves := []string{"admin.crt", "admin.key", "apiserver.crt", "apiserver.key", "front-proxy-client.crt", "front-proxy-client.key"}
	for range 2 {
		began := clock.Now()
		pass(t, clock, 10*time.Minute, renewed, nil)
		if lived := clock.Since(began); lived < 2*time.Hour {
			t.Errorf("renewed after %s, want two thirds of three hours to pass", lived)
		}
		after := ensured(t, p, clock.Now(), served)
		if got := changed(before, after); !slices.Equal(got, leaves) {
			t.Errorf("wrote %v, want %v", got, leaves)
		}
		if err := serving.RunOnce(t.Context()); err != nil {
			t.Errorf("the server cannot take over what was renewed: %v", err)
		}
		if got, _ := serving.CurrentCertKeyContent(); !bytes.Equal(got, after["apiserver.crt"]) {
			t.Error("the server goes on with the old certificate")
		}
		before = after
	}
}

func TestARenewalThatFailsIsTriedAgain(t *testing.T) {
	p := Store{Dir: t.TempDir(), lifetime: 3 * time.Hour}
	ensured(t, p, today, served)
	clock := testingclock.NewFakeClock(today)
	renewed := keptCurrent(t, p, clock)
	pass(t, clock, time.Minute, renewed, errors.New("the disk is full"))
	failed := clock.Now()
	pass(t, clock, time.Second, renewed, nil)
	if waited := clock.Since(failed); waited > 2*renewalRetry {
		t.Errorf("tried again after %s, want %s", waited, renewalRetry)
	}
}
