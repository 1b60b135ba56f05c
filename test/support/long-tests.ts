/** The stories that take longest. `npm test` leaves them out, `npm run test:long` runs them, and `npm run check` runs both. */
export const LONG_TESTS = [
  'test/stories/{resource-limits,hook-points,compaction,planted-secret,subscribers,editor,churn,event-loop}.test.ts',
  'test/stories/{network,network-requests,network-escape,guessing,ending,mcp,mcp-hostile,mcp-changes,docs-page}.test.ts',
  'test/stories/{crash,kill,killed-while-asking,cut-after-answer,cut-protocols,command-crash,faults,starting,readme-tour,headless,headless-options}.test.ts',
  'test/stories/{background-subagents,resting-subagents,requests-killed,hostile-subagents,isolation,listening,hooks}.test.ts',
  'test/sdk/killed-functions.test.ts',
  'test/ui/large.test.ts',
  'test/shell/guard/process-guard.test.ts', // waits for the end of leases
  'test/shell/command-ends.test.ts', // `npm test` runs it in the sandbox
  'test/{sdk/holder,stories/file-paths,stories/client-hooks,files/trees/remove-tree,http/refusals}.test.ts',
  'test/{examples/examples,typed-client/browser,security/hostile-text}.test.ts',
  'test/stories/{http-hooks,sockets,left-behind,unfinished-stop,stuck,resuming,sessions,git-identity,home-access}.test.ts',
]
