/**
 * `node scripts/setting-tables.ts [--write]`: the options of the SDKs that are settings of a session, from the table of settings:
 * rows of docs/sdk.md and docs/python.md, and sdk/python/agent_server/settings.py; and the kinds of requests in docs/requests.md.
 * `--write` updates them.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { REQUEST_KINDS, REQUESTS } from '../src/contract/requests/request-kinds.ts'
import { SETTINGS } from '../src/contract/settings.ts'
import type { PlainSetting, ValueType } from '../src/sdk/options/setting-options.ts'
import { isChangeable, optionNameOf, PLAIN_SETTINGS, valueTypeOf } from '../src/sdk/options/setting-options.ts'

const ROOT = join(import.meta.dirname, '..')
const MARKERS = { start: '<!-- settings -->\n', end: '<!-- /settings -->' }

type NameOf = (setting: PlainSetting) => string

const pythonNameOf: NameOf = (setting) =>
  optionNameOf(setting).replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

const PYTHON_TYPES: Readonly<Record<ValueType, string>> = {
  string: 'str',
  integer: 'int',
  number: 'float',
  boolean: 'bool',
  array: 'Sequence[str]',
  object: 'Mapping[str, Any]',
}

/** The files with what they must contain. */
export function settingFiles(): { readonly path: string; readonly is: string; readonly wanted: string }[] {
  const files: readonly (readonly [path: string, make: (text: string) => string])[] = [
    ['docs/sdk.md', (page) => withTable(page, optionNameOf)],
    ['docs/python.md', (page) => withNames(page, pythonNameOf)],
    ['sdk/python/agent_server/settings.py', pythonModule],
    ['docs/requests.md', withKinds],
  ]
  return files.map(([path, make]) => {
    const is = readFileSync(join(ROOT, path), 'utf8')
    return { path, is, wanted: make(is) }
  })
}

function withTable(page: string, nameOf: NameOf): string {
  const rows = PLAIN_SETTINGS.map((setting) => `| \`${nameOf(setting)}\` | ${aboutOf(setting, nameOf)} |`)
  const fixed = PLAIN_SETTINGS.filter((setting) => !isChangeable(setting)).map((setting) => `\`${nameOf(setting)}\``)
  const kept = `A session that is continued keeps ${fixed.join(', ')}: other values are an error.`
  return withRows(page, ['| setting | meaning |', '|---|---|', ...rows, '', kept])
}

/** A kind is a link if the page has a heading that begins with it. */
function withKinds(page: string): string {
  const anchors = [...page.matchAll(/^## (.+)$/gm)].map(([, heading = '']) =>
    heading.toLowerCase().replaceAll(' ', '-'),
  )
  const list = (fields: object) => Object.keys(fields).map((name) => `\`${name}\``)
  const rows = REQUEST_KINDS.map((kind) => {
    const { about, payload, answer, scope } = REQUESTS[kind]
    const anchor = anchors.find((each) => each.startsWith(kind.replaceAll('_', '-')))
    const name = anchor === undefined ? `\`${kind}\`` : `[\`${kind}\`](#${anchor})`
    return `| ${name} | ${about} | ${list(payload.shape).join(', ')} | ${list(answer).join(', ')} | \`${scope}\` |`
  })
  return withRows(page, [
    '| `kind` | opened when | `payload` | answer | scope to answer |',
    '|---|---|---|---|---|',
    ...rows,
  ])
}

/** The names alone: the page refers to another one for their meaning. */
function withNames(page: string, nameOf: NameOf): string {
  const rows = [true, false].map((changeable) => {
    const names = PLAIN_SETTINGS.filter((setting) => isChangeable(setting) === changeable).map(nameOf)
    return `| ${names.map((name) => `\`${name}\``).join(', ')} | ${changeable ? 'change' : 'are an error with another value'} |`
  })
  return withRows(page, ['| settings | of a session that is continued |', '|---|---|', ...rows])
}

function withRows(page: string, lines: readonly string[]): string {
  const [before = '', rest = ''] = page.split(MARKERS.start)
  const after = rest.slice(rest.indexOf(MARKERS.end))
  return `${before}${MARKERS.start}${lines.join('\n')}\n${after}`
}

/** Its description in the API, with the names of these options. */
function aboutOf(setting: PlainSetting, nameOf: NameOf): string {
  const schema = SETTINGS[setting].create
  const text = schema.description ?? ('unwrap' in schema ? schema.unwrap().description : undefined)
  if (text === undefined) throw new Error(`The setting ${setting} needs a description: schema.describe('…').`)
  const named = new Map<string, PlainSetting>(PLAIN_SETTINGS.map((each) => [each, each]))
  return text.replaceAll(/`(\w+)`/g, (code, name: string) => {
    const known = named.get(name)
    return known ? `\`${nameOf(known)}\`` : code
  })
}

function pythonModule(): string {
  const fields = PLAIN_SETTINGS.flatMap((setting) => [
    `    ${pythonNameOf(setting)}: ${PYTHON_TYPES[valueTypeOf(setting)]} | None = None`,
    ...docstring(aboutOf(setting, pythonNameOf)),
  ])
  const wire = PLAIN_SETTINGS.map((setting) => `    "${pythonNameOf(setting)}": "${setting}",`)
  const fixed = PLAIN_SETTINGS.filter((setting) => !isChangeable(setting)).map((each) => `    "${pythonNameOf(each)}",`)
  return `"""The options that are settings of the session. Generated by scripts/setting-tables.ts: do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class SettingOptions:
${fields.join('\n')}


SETTING_FIELDS = {
${wire.join('\n')}
}
"""The names of the wire."""

FIXED_SETTINGS = (
${fixed.join('\n')}
)
"""What a session keeps from its creation."""
`
}

const MAX_LINE = 120

/** Lines of at most that many characters. */
function docstring(text: string): string[] {
  const lines = ['    """']
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? ''
    const joined = line.endsWith('"""') || line === '    ' ? `${line}${word}` : `${line} ${word}`
    if (joined.length <= MAX_LINE) lines[lines.length - 1] = joined
    else lines.push(`    ${word}`)
  }
  if (lines.length > 1) return [...lines, '    """']
  return [`${lines[0] ?? ''}"""`]
}

if (import.meta.main) {
  const stale = settingFiles().filter(({ is, wanted }) => is !== wanted)
  if (process.argv.includes('--write')) for (const { path, wanted } of stale) writeFileSync(join(ROOT, path), wanted)
  else for (const { path } of stale) process.stdout.write(`${path} is stale.\n`)
}
