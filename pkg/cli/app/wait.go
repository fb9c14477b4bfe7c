package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/pkg/cli/follow"
	"github.com/manifold-dev/manifold/pkg/cli/release/progress"
	"github.com/manifold-dev/manifold/pkg/cli/release/watching"
)

// patience says whether to wait for a release, and for how long.
type patience follow.Patience

func (p *patience) addFlags(cmd *cobra.Command) {
	(*follow.Patience)(p).AddFlags(cmd, "Follow the release until it has ended.", "the release takes")
}

func (p *patience) validate() error { return (*follow.Patience)(p).Validate() }

// await tells of a release that was made, and follows it to its end if that is asked for. What happens meanwhile goes to standard error, so that
// standard output holds the result alone.
func (p *patience) await(
	ctx context.Context, streams genericiooptions.IOStreams, client versioned.Interface, application *v1alpha1.Application, release *v1alpha1.Release,
) error {
	if why := obstacle(application, release); why != "" {
		fmt.Fprintf(streams.ErrOut, "Warning: %s\n", why)
	}
	if !p.Wait {
		fmt.Fprintf(streams.Out, "release/%s created: %s of application %s\n", release.Name, release.Spec.Revision, application.Name)
		return nil
	}
	fmt.Fprintf(streams.ErrOut, "release/%s created\n", release.Name)
	if err := p.follow(ctx, streams, client, release); err != nil {
		return err
	}
	fmt.Fprintf(streams.Out, "application/%s runs %s\n", application.Name, release.Spec.Revision)
	return nil
}

// follow shows a release until it has ended or the time is up, in which case it goes on.
func (p *patience) follow(ctx context.Context, streams genericiooptions.IOStreams, client versioned.Interface, release *v1alpha1.Release) error {
	bounded, cancel := watchtools.ContextWithOptionalTimeout(ctx, p.Timeout)
	defer cancel()
	err := watching.New(client, streams.ErrOut).Follow(bounded, release.Namespace, release.Name)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		fmt.Fprintf(streams.ErrOut, "The release goes on: manifold release watch %s -n %s\n", release.Name, release.Namespace)
		return err
	case errors.Is(err, context.DeadlineExceeded):
		where := ""
		if now, err := client.DeliveryV1alpha1().Releases(release.Namespace).Get(ctx, release.Name, metav1.GetOptions{}); err == nil {
			where = fmt.Sprintf(", it is %s", progress.Phase(now))
		}
		return fmt.Errorf("release %s has not ended after %s and goes on%s: manifold release get %s -n %s",
			release.Name, p.Timeout, where, release.Name, release.Namespace)
	}
	return err
}
