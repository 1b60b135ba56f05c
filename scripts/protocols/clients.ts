/** Defines which clients are checked, in which versions, and how. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runA2aProof } from './a2a-proof.ts'
import { runMcpConformance } from './mcp-conformance.ts'
import type { CaseResult, ProgramPlace } from './run-program.ts'
import { runProgram } from './run-program.ts'

/** The folders of `scripts/protocols/pins`. */
export type PinsName = 'npm' | 'python' | 'a2a-proof'

export type ClientUnderCheck = {
  readonly name: string
  readonly version: string
  /** What it is installed with; undefined if this project has it. */
  readonly pins?: PinsName
  readonly run: (place: ProgramPlace) => Promise<CaseResult[]>
}

const PINS = join(import.meta.dirname, 'pins')
const ROOT = join(import.meta.dirname, '../..')

const PROTOCOL_SDKS = ['openai', '@ai-sdk/react', '@ag-ui/client', '@agentclientprotocol/sdk', '@a2a-js/sdk']

const program = (file: string) => (place: ProgramPlace) => runProgram(file, place)

export const PROTOCOL_CLIENTS: readonly ClientUnderCheck[] = [
  {
    name: 'one conversation by each protocol',
    version: PROTOCOL_SDKS.map(ownVersion).join(', '),
    run: program('one-conversation.ts'),
  },
  { name: 'openai (npm)', version: ownVersion('openai'), run: program('openai.ts') },
  {
    name: 'ai, @ai-sdk/react',
    version: `${ownVersion('ai')}, ${ownVersion('@ai-sdk/react')}`,
    run: program('ai-sdk.ts'),
  },
  { name: '@ag-ui/client', version: ownVersion('@ag-ui/client'), run: program('ag-ui.ts') },
  { name: '@agentclientprotocol/sdk', version: ownVersion('@agentclientprotocol/sdk'), run: program('acp.ts') },
  { name: '@a2a-js/sdk', version: ownVersion('@a2a-js/sdk'), run: program('a2a.ts') },
  { name: '@openai/agents', version: pinnedInNpm('@openai/agents'), pins: 'npm', run: program('openai-agents.mjs') },
  {
    name: '@ai-sdk/open-responses',
    version: pinnedInNpm('@ai-sdk/open-responses'),
    pins: 'npm',
    run: program('open-responses.mjs'),
  },
  { name: 'acpx', version: pinnedInNpm('acpx'), pins: 'npm', run: program('acpx.mjs') },
  {
    name: '@modelcontextprotocol/conformance',
    version: pinnedInNpm('@modelcontextprotocol/conformance'),
    pins: 'npm',
    run: runMcpConformance,
  },
  {
    name: '@modelcontextprotocol/ext-tasks',
    version: pinnedInNpm('@modelcontextprotocol/ext-tasks'),
    pins: 'npm',
    run: program('mcp-tasks.mjs'),
  },
  { name: 'openai (PyPI)', version: pinnedInPython('openai'), pins: 'python', run: program('openai_client.py') },
  {
    name: 'openai-agents (PyPI)',
    version: pinnedInPython('openai-agents'),
    pins: 'python',
    run: program('openai_agents.py'),
  },
  {
    name: 'agent-client-protocol (PyPI)',
    version: pinnedInPython('agent-client-protocol'),
    pins: 'python',
    run: program('acp_client.py'),
  },
  {
    name: 'ag-ui-protocol (PyPI)',
    version: pinnedInPython('ag-ui-protocol'),
    pins: 'python',
    run: program('ag_ui_client.py'),
  },
  { name: 'a2a-sdk (PyPI)', version: pinnedInPython('a2a-sdk'), pins: 'python', run: program('a2a_client.py') },
  {
    name: 'a2a-proof (PyPI)',
    version: pinnedInPython('a2a-proof', 'a2a-proof'),
    // Its packages exclude those of the other clients.
    pins: 'a2a-proof',
    run: runA2aProof,
  },
]

/** Returns the version of a package that this project has. */
function ownVersion(name: string): string {
  const { dependencies, devDependencies } = readManifest(join(ROOT, 'package.json'))
  return dependencies?.[name] ?? devDependencies?.[name] ?? 'unknown'
}

function pinnedInNpm(name: string): string {
  return readManifest(join(PINS, 'npm/package.json')).dependencies?.[name] ?? 'unknown'
}

function pinnedInPython(name: string, pins: PinsName = 'python'): string {
  const lines = readFileSync(join(PINS, pins, 'requirements.txt'), 'utf8').split('\n')
  return lines.find((line) => line.startsWith(`${name}==`))?.slice(name.length + 2) ?? 'unknown'
}

type Manifest = Readonly<Partial<Record<'dependencies' | 'devDependencies', Record<string, string>>>>

function readManifest(path: string): Manifest {
  return JSON.parse(readFileSync(path, 'utf8')) as Manifest
}
