/** Code as runs with the scope of each, such as `keyword`. Loaded when code is shown: it is as large as the rest of a screen. */
import type { Emitter, HLJSOptions } from 'highlight.js'
import core from 'highlight.js/lib/core'
import bash from 'highlight.js/lib/languages/bash'
import c from 'highlight.js/lib/languages/c'
import cpp from 'highlight.js/lib/languages/cpp'
import csharp from 'highlight.js/lib/languages/csharp'
import css from 'highlight.js/lib/languages/css'
import diff from 'highlight.js/lib/languages/diff'
import dockerfile from 'highlight.js/lib/languages/dockerfile'
import go from 'highlight.js/lib/languages/go'
import ini from 'highlight.js/lib/languages/ini'
import java from 'highlight.js/lib/languages/java'
import javascript from 'highlight.js/lib/languages/javascript'
import json from 'highlight.js/lib/languages/json'
import makefile from 'highlight.js/lib/languages/makefile'
import python from 'highlight.js/lib/languages/python'
import ruby from 'highlight.js/lib/languages/ruby'
import rust from 'highlight.js/lib/languages/rust'
import sql from 'highlight.js/lib/languages/sql'
import typescript from 'highlight.js/lib/languages/typescript'
import xml from 'highlight.js/lib/languages/xml'
import yaml from 'highlight.js/lib/languages/yaml'

export type CodeRun = { readonly text: string; readonly scope: string | undefined }

const LANGUAGES = {
  bash,
  c,
  cpp,
  csharp,
  css,
  diff,
  dockerfile,
  go,
  ini,
  java,
  javascript,
  json,
  makefile,
  python,
  ruby,
  rust,
  sql,
  typescript,
  xml,
  yaml,
}

/** Collects the runs. It makes no markup: the text of the library that a browser would read as such stays empty. */
class Runs implements Emitter {
  readonly runs: CodeRun[] = []
  readonly #scopes: string[] = []

  addText(text: string): void {
    if (text !== '') this.runs.push({ text, scope: this.#scopes.at(-1) })
  }

  startScope(name: string): void {
    this.#scopes.push(name)
  }

  endScope(): void {
    this.#scopes.pop()
  }

  openNode(name: string): void {
    this.startScope(name)
  }

  closeNode(): void {
    this.endScope()
  }

  __addSublanguage(emitter: Emitter): void {
    if (emitter instanceof Runs) this.runs.push(...emitter.runs)
  }

  finalize(): void {}

  toHTML(): string {
    return ''
  }
}

const highlighter = core.newInstance()
for (const [name, language] of Object.entries(LANGUAGES)) highlighter.registerLanguage(name, language)
highlighter.configure({ __emitter: Runs } satisfies Partial<HLJSOptions>)

/** Returns undefined for a language that it does not know, by name or by the ending of a file. */
export function highlight(code: string, language: string): readonly CodeRun[] | undefined {
  if (!highlighter.getLanguage(language)) return undefined
  const { _emitter } = highlighter.highlight(code, { language, ignoreIllegals: true })
  return _emitter instanceof Runs ? _emitter.runs : undefined
}
