package admin

import (
	"context"
	"errors"
	"fmt"

	"kctl/zkutil"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// ErrOtherCluster says that the addresses lead to another cluster than Config.ClusterID names.
var ErrOtherCluster = errors.New("this is another cluster")

// VerifyCluster asks which cluster answers and compares its id with Config.ClusterID, when that is set. When nobody
// answers it returns nil: every later answer is compared too. The id is returned when it is known.
func (c *Client) VerifyCluster(ctx context.Context) (id string, err error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	if _, err = c.metadata(ctx, []string{}); errors.Is(err, ErrOtherCluster) {
		return "", err
	}
	if err == nil {
		return c.ClusterID(), nil
	}
	if c.HasZooKeeper() {
		zk, err := c.zookeeper(ctx)
		if errors.Is(err, ErrOtherCluster) {
			return "", err
		}
		if err == nil {
			return storedClusterID(zk.Do(ctx, zkutil.AnySession, zkop.Request{Kind: zkop.Get, Path: znode.ClusterIDPath})[0]), nil
		}
	}
	return "", nil
}

// storedClusterID is the id in an answer about its znode; empty when there is none, as before the first broker starts.
func storedClusterID(r zkop.Response) string {
	if r.Err != nil {
		return ""
	}
	id, err := znode.DecodeClusterID(r.Data)
	if err != nil {
		return ""
	}
	return id
}

// otherCluster compares an id that was read with the one that is expected.
func (c *Client) otherCluster(source, got string) error {
	want := c.cfg.ClusterID
	if want == "" || got == "" || got == want {
		return nil
	}
	return &Error{
		Kind: Failed, Msg: fmt.Sprintf("%s belong to cluster %s, expected was cluster %s", source, got, want), Err: ErrOtherCluster,
		Hint: "nothing was read or changed; if the cluster was replaced on purpose, tell kctl its new id",
	}
}

// guardZooKeeper compares the id that ZooKeeper holds; one that cannot be read is not held against it.
func (c *Client) guardZooKeeper(ctx context.Context, zk zkutil.Client) error {
	if c.cfg.ClusterID == "" {
		return nil
	}
	r := zk.Do(ctx, zkutil.AnySession, zkop.Request{Kind: zkop.Get, Path: znode.ClusterIDPath})[0]
	return c.otherCluster("the servers of "+c.cfg.ZooKeeper.String(), storedClusterID(r))
}
