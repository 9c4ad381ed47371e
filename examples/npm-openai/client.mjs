// The official openai package behind the gateway.
import OpenAI from "openai";

// newClient returns a client whose calls go through the gateway at url. The key
// is the vendor's, as always. The package's own retries may stay on: it does not
// retry what the gateway refuses.
export function newClient(url, apiKey, options) {
  return new OpenAI({ baseURL: url + "/v1", apiKey, ...options });
}

// background marks one call as background work: give it as the call's options.
export const background = { headers: { "X-Headway-Lane": "background" } };

// refusal returns why the gateway refused a call and after how many milliseconds
// to come back, or null if the error is the vendor's own or another one.
export function refusal(err) {
  const headers = err instanceof OpenAI.APIError ? err.headers : null;
  const reason = headers?.get("Headway-Refused");
  return reason ? { reason, retryAfterMs: Number(headers.get("Retry-After-Ms")) } : null;
}
