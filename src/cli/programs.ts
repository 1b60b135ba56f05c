/** The programs that speak a protocol on standard input and output. Each is loaded when it is used. */
import type { AcpInvocation, McpInvocation } from './command-line/read-arguments.ts'
import { UsageError } from './command-line/usage-error.ts'

type ProgramInvocation = AcpInvocation | McpInvocation

type Programs = {
  readonly [Name in ProgramInvocation['name']]?: (
    invocation: Extract<ProgramInvocation, { readonly name: Name }>,
  ) => Promise<number>
}

const PROGRAMS: Programs = {
  acp: async (invocation) => await (await import('./acp/acp.ts')).acp(invocation),
  mcp: async (invocation) => await (await import('./mcp-server/mcp-server.ts')).mcpServer(invocation),
}

/** Returns the exit code. */
export async function runProgram(invocation: ProgramInvocation): Promise<number> {
  const exitCode = invocation.name === 'acp' ? PROGRAMS.acp?.(invocation) : PROGRAMS.mcp?.(invocation)
  if (exitCode === undefined) throw new UsageError(`This agent-server was built without ${invocation.name}.`)
  return await exitCode
}
