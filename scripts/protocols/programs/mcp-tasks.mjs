// @ts-nocheck -- its packages are not those of this project
/** The protocol's own client of tasks: agents that work are tasks, which it polls, cancels and finds again. */
import assert from 'node:assert/strict'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { createTaskSessionFromClient, resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client'
import * as cases from './cases.ts'

const URL_OF_MCP = new URL(`${cases.URL_OF_SERVER}/mcp`)
const FRAMING = {
  protocolVersion: '2026-07-28',
  clientInfo: { name: 'check', version: '1' },
  clientCapabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } },
}
const headers = { authorization: `Bearer ${cases.KEY_OF_SERVER}` }

/** The client of the SDK does not read results that are tasks. */
async function dispatch(request, { signal } = {}) {
  const { method, params } = request
  const response = await fetch(URL_OF_MCP, {
    method: 'POST',
    headers: {
      ...headers,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': FRAMING.protocolVersion,
      'mcp-method': method,
      'mcp-name': params.name ?? params.taskId,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: crypto.randomUUID(), ...request }),
    signal,
  })
  const text = await response.text()
  const { result, error } = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text)
  return error ? { kind: 'error', error } : { kind: 'result', result }
}

/** A session that closes cancels what it has begun. */
async function withSession(run, { closes = true } = {}) {
  const client = new Client(FRAMING.clientInfo, {
    capabilities: FRAMING.clientCapabilities,
    versionNegotiation: { mode: 'auto' },
  })
  await client.connect(new StreamableHTTPClientTransport(URL_OF_MCP, { requestInit: { headers } }))
  const session = createTaskSessionFromClient(client, {
    endpointId: 'check',
    rawDispatch: dispatch,
    v2RequestFraming: FRAMING,
  })
  try {
    return await run(session)
  } finally {
    if (closes) await session.close()
    await client.close()
  }
}

async function endOf(execution) {
  const { outcome } = await execution.settle()
  return resultFromTaskOutcome(outcome).structuredContent
}

await cases.runCases({
  text: async () =>
    await withSession(async (session) => {
      const execution = await session.callTool('start_agent', { prompt: cases.SLOWLY })
      assert.equal(execution.kind, 'task')
      const { final_text, status } = await endOf(execution)
      assert.deepEqual({ final_text, status }, { final_text: cases.WORDS, status: 'idle' })
    }),
  approval: async () =>
    await withSession(async (session) => {
      const { conversation_id, pending } = await endOf(await session.callTool('start_agent', { prompt: cases.COMPUTE }))
      assert.equal(pending[0].input.command, cases.COMMAND)
      const { request_id, tool_use_id, input_hash } = pending[0]
      const decision = { conversation_id, request_id, tool_use_id, input_hash, behavior: 'allow' }
      const { final_text } = await endOf(await session.callTool('decide', decision))
      assert.match(final_text, cases.RESULT)
    }),
  cancel: async () =>
    await withSession(async (session) => {
      const execution = await session.callTool('start_agent', { prompt: cases.ENDLESS })
      await execution.cancel()
      assert.equal((await execution.settle()).outcome.status, 'cancelled')
    }),
  'another session': async () => {
    const begin = async (session) => (await session.callTool('start_agent', { prompt: cases.SLOWLY })).handle.taskId
    const taskId = await withSession(begin, { closes: false })
    const reference = { endpointId: 'check', generation: 'v2', taskId, originalOperation: 'tools/call' }
    const report = await withSession(async (session) => await endOf(await session.resumeTask(reference)))
    assert.equal(report.final_text, cases.WORDS)
  },
  'unknown task': async () =>
    await withSession(async (session) => {
      await assert.rejects(session.cancelTask(`${crypto.randomUUID()}.1`), { code: -32602 })
    }),
})
