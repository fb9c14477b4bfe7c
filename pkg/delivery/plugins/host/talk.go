package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/deployment"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/drift"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/livestate"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/planpreview"
)

const (
	// mostAnswer bounds an answer of a plugin, in bytes, and mostHeaders what comes with it, errors included.
	mostAnswer  = 16 << 20
	mostHeaders = 256 << 10
	// mostNames bounds an answer that is names of stages.
	mostNames = 64 << 10
	// mostStages and mostStage bound how many stages a plugin has, and how long their names are.
	mostStages = 64
	mostStage  = 64
)

// dial returns a connection to what listens on a port of the loopback interface.
func dial(port int32) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithMaxHeaderListSize(mostHeaders),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostAnswer), grpc.MaxCallSendMsgSize(mostAnswer), grpc.ForceCodecV2(wire.Codec())),
		grpc.WithIdleTimeout(0),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.5, MaxDelay: time.Second},
			MinConnectTimeout: 2 * time.Second,
		}))
}

// fetchStages asks a plugin for its stages. A plugin that does not serve them has none.
func fetchStages(ctx context.Context, conn grpc.ClientConnInterface, wait bool) (stages []string, serves bool, err error) {
	answer, err := deployment.NewDeploymentServiceClient(conn).FetchDefinedStages(ctx, &deployment.FetchDefinedStagesRequest{},
		grpc.MaxCallRecvMsgSize(mostNames), grpc.WaitForReady(wait))
	if status.Code(err) == codes.Unimplemented {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("FetchDefinedStages: %s", text.Line(status.Convert(err).Message(), mostSaid))
	}
	stages, err = stageNames(answer.GetStages())
	return stages, true, err
}

var stageName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// stageNames checks what a plugin says that its stages are.
func stageNames(said []string) ([]string, error) {
	if len(said) > mostStages {
		return nil, fmt.Errorf("FetchDefinedStages: it names %d stages, and may have %d at most", len(said), mostStages)
	}
	for _, name := range said {
		if len(name) > mostStage || !stageName.MatchString(name) {
			return nil, fmt.Errorf("FetchDefinedStages: %q is no name of a stage: it must be at most %d letters, digits, dots, dashes and underscores", text.Line(name, mostStage), mostStage)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(said))), nil
}

// optional are the services that a plugin may have beside that of deployments, each with one of its methods.
var optional = []struct{ service, method string }{
	{plugins.ServiceLiveState, livestate.LivestateService_GetLivestate_FullMethodName},
	{plugins.ServicePlanPreview, planpreview.PlanPreviewService_GetPlanPreview_FullMethodName},
	{plugins.ServiceDrift, drift.DriftService_GetDrift_FullMethodName},
}

// fetchServices finds out which services a plugin has. The request cannot be read, so no code of the plugin ever sees it: a server that has the method says so,
// and one that does not have it says that.
func fetchServices(ctx context.Context, conn grpc.ClientConnInterface, deployments bool) ([]string, error) {
	var out []string
	if deployments {
		out = append(out, plugins.ServiceDeployment)
	}
	for _, of := range optional {
		err := conn.Invoke(ctx, of.method, unreadable{}, unreadable{}, grpc.ForceCodecV2(unreadable{}), grpc.MaxCallRecvMsgSize(mostNames))
		switch status.Code(err) {
		case codes.Unimplemented:
		case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded:
			return nil, fmt.Errorf("ask for service %s: %s", of.service, text.Line(status.Convert(err).Message(), mostSaid))
		default:
			out = append(out, of.service)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("it serves none of the services of a plugin")
	}
	return out, nil
}

// unreadable writes what is no message, and reads nothing.
type unreadable struct{}

func (unreadable) Marshal(any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer{0xff}}, nil
}
func (unreadable) Unmarshal(mem.BufferSlice, any) error { return nil }
func (unreadable) Name() string                         { return "proto" }
