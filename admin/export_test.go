package admin

// ForgetAPI makes the client believe that the brokers do not serve a key, as old ones do not.
func (c *Client) ForgetAPI(key int16) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.keys, key)
}
