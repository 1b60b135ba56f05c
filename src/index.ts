/** What the npm package `agent-server` exports. Browsers import `agent-server/client`, which is a part of it. */
export * from './client/client.ts'
