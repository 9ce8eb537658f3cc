package api

import (
	"context"
	"regexp"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
)

// ApiVersions tells what this broker serves. The header of the answer is that of version 0 always, since the
// client cannot know yet what the broker understands (KIP-511, which also brought name and version of the
// client's software in version 3).
var apiVersionsAPI = definition{key: 18, min: 0, max: 4, handle: (*Service).apiVersions}

// softwarePattern is what KIP-511 allows as name and version.
var softwarePattern = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$`)

func (s *Service) apiVersions(_ context.Context, c *call) kmsg.Response {
	req := c.body.(*kmsg.ApiVersionsRequest)
	resp := req.ResponseKind().(*kmsg.ApiVersionsResponse)
	if req.Version >= 3 {
		if !softwarePattern.MatchString(req.ClientSoftwareName) || !softwarePattern.MatchString(req.ClientSoftwareVersion) {
			resp.ErrorCode = kerr.InvalidRequest.Code
			return resp
		}
		c.Conn.SoftwareName, c.Conn.SoftwareVersion = req.ClientSoftwareName, req.ClientSoftwareVersion
	}
	resp.ApiKeys = s.version
	resp.UnknownTags.Set(cluster.LeaderChangeTag, []byte{cluster.LeaderChangeVersion}) // written from version 3 on
	return resp
}

// apiVersionsFallback answers a version from the future: in version 0, with the one range that the client needs
// to try again.
func (s *Service) apiVersionsFallback() kmsg.Response {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.ErrorCode = kerr.UnsupportedVersion.Code
	k := kmsg.NewApiVersionsResponseApiKey()
	k.ApiKey, k.MinVersion, k.MaxVersion = apiVersionsAPI.key, apiVersionsAPI.min, apiVersionsAPI.max
	resp.ApiKeys = []kmsg.ApiVersionsResponseApiKey{k}
	return resp
}
