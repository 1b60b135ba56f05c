/**
 * `node scripts/tool-costs.ts [--write]`: what each preset of tools costs in every request to a model: bytes of the system
 * prompt and of the descriptions and schemas of its tools. `--write` updates the table in docs/tools.md.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildSystemPrompt } from '../src/agent/prompt.ts'
import { ToolCalls } from '../src/agent/tool-calls.ts'
import { createEditorFiles } from '../src/files/editor-files.ts'
import { createSafeFetch } from '../src/security/safe-fetch.ts'
import { createRedactor } from '../src/security/redaction/redactor.ts'
import { PdfReader } from '../src/tools/pdf/pdf-reader.ts'
import { PRESETS } from '../src/tools/presets.ts'
import type { ToolDeps } from '../src/tools/registry.ts'
import { UnfinishedFiles } from '../src/files/jail/unfinished-files.ts'
import { createTools } from '../src/tools/registry.ts'
import { createTavily } from '../src/tools/web/search-engine.ts'

const MARKERS = { start: '<!-- tool costs -->', end: '<!-- /tool costs -->' }

const unused = () => {
  throw new Error('no tool runs here')
}

/** Dependencies of tools that are described and never run. */
export const UNUSED_DEPS: ToolDeps = {
  shells: { get: unused, standOf: unused, fork: unused, endFork: unused },
  files: createEditorFiles(unused, new UnfinishedFiles('/nonexistent')),
  stateDirectory: '/nonexistent',
  search: { openJail: unused, ripgrep: unused },
  web: { fetch: createSafeFetch({ allow: [] }), refusal: unused },
  project: { accessOfSkill: unused, accessOfCommand: unused, useSkill: unused, useCommand: unused },
  pdfs: new PdfReader(),
  searchEngine: createTavily('key'),
  subagents: {
    agents: () => '- general-purpose: For research, searches in many files, and tasks of several steps.',
    run: unused,
  },
  lastOutput: unused,
  limitsOf: () => undefined,
  sealer: { seal: unused, unseal: unused },
  redact: unused,
}

export type PresetCost = {
  readonly preset: string
  readonly tools: readonly string[]
  readonly prompt: number
  readonly schemas: number
}

/** Bytes, as a request to an OpenAI-compatible endpoint has them. */
export function presetCosts(): PresetCost[] {
  return Object.entries(PRESETS).map(([preset, names]) => {
    const { descriptions } = new ToolCalls({
      tools: createTools(names, UNUSED_DEPS),
      context: unused,
      redactor: createRedactor(),
      emit: unused,
      adviceFor: unused,
      onOutput: unused,
      onCrash: unused,
    })
    const prompt = buildSystemPrompt({ workdir: '/work', tools: names, extensions: [], microagents: [] })
    const functions = descriptions.map(({ name, description, inputSchema: parameters }) => {
      return { type: 'function', function: { name, description, parameters } }
    })
    return {
      preset,
      tools: names,
      prompt: Buffer.byteLength(prompt),
      schemas: Buffer.byteLength(JSON.stringify(functions)),
    }
  })
}

/** A table in Markdown. */
export function costTable(): string {
  return [
    '| preset | tools | bytes of each request |',
    '|---|---|---|',
    ...presetCosts().map(
      ({ preset, tools, prompt, schemas }) =>
        `| \`${preset}\` | ${tools.map((name) => `\`${name}\``).join(', ')} | ${prompt + schemas} |`,
    ),
  ].join('\n')
}

/** The table as docs/tools.md has it. */
export function writtenTable(document: string): string {
  return document.slice(document.indexOf(MARKERS.start) + MARKERS.start.length, document.indexOf(MARKERS.end)).trim()
}

function withTable(document: string): string {
  const [start, end] = [document.indexOf(MARKERS.start) + MARKERS.start.length, document.indexOf(MARKERS.end)]
  return `${document.slice(0, start)}\n${costTable()}\n${document.slice(end)}`
}

if (import.meta.main) {
  const path = join(import.meta.dirname, '../docs/tools.md')
  const document = readFileSync(path, 'utf8')
  if (process.argv.includes('--write')) writeFileSync(path, withTable(document))
  else console.log(costTable())
}
