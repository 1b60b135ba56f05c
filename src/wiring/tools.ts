/** Wires the tools of conversations to what the server has: files, the search program, the web. */
import type { Config } from '../config/config.ts'
import type { Execution, Workspace } from '../conversations/dependencies.ts'
import { createEditorFiles } from '../files/editor-files.ts'
import type { FileRules } from '../files/jail/file-gate.ts'
import { openJail } from '../files/jail/path-jail.ts'
import { Queue } from '../lib/queue.ts'
import { limitEditor } from '../limits/limited-editor.ts'
import type { ShellLauncher } from '../sandbox/launch.ts'
import type { SafeFetch } from '../security/safe-fetch.ts'
import { PdfReader } from '../tools/pdf/pdf-reader.ts'
import type { ToolName } from '../tools/registry.ts'
import { createTools } from '../tools/registry.ts'
import type { SearchAccess } from '../tools/search/search-place.ts'
import { createTavily } from '../tools/web/search-engine.ts'
import { fileRules } from './conversation-places.ts'
import type { HomeViews } from './home-views.ts'

/** What the tools of all conversations share. */
export type SharedByTools = Workspace['files'] & { readonly web: SafeFetch }

/** Waits for files of one conversation's searches at a time. */
const SEARCH_SHARE = 4

export function toolsExecution(
  config: Config,
  launcher: ShellLauncher,
  { homes, ...sharedDeps }: SharedByTools & { readonly homes: HomeViews | undefined },
): Pick<Execution, 'createTools' | 'missingTools'> {
  const { webSearch } = config
  const pdfs = new PdfReader()
  const searchEngine = webSearch && createTavily(webSearch.apiKey, webSearch.baseUrl)
  return {
    missingTools: missingTools(config),
    createTools(names, { quota, webRefusal, deniedFiles, ...deps }) {
      const deniedOf = () => (homes ? homes.deniedWithin(deps, deniedFiles()) : deniedFiles())
      const rules = () => ({ ...fileRules(config, launcher, deps, homes), denied: deniedOf() })
      const files = createEditorFiles(rules, sharedDeps.unfinished)
      return createTools(names, {
        ...deps,
        files: quota ? limitEditor(files, quota) : files,
        search: searchDeps(rules, sharedDeps),
        web: { fetch: sharedDeps.web, refusal: webRefusal },
        pdfs,
        searchEngine,
      })
    },
  }
}

/** Tools that this server cannot offer as it is configured. */
export function missingTools({ webSearch }: Pick<Config, 'webSearch'>): ReadonlySet<ToolName> {
  return new Set(webSearch ? [] : ['WebSearch'])
}

function searchDeps(rules: () => FileRules, { io, ripgrep }: SharedByTools): SearchAccess {
  const share = new Queue({ limit: SEARCH_SHARE })
  return {
    ripgrep,
    openJail: (workdir, signal) =>
      openJail({
        workdir,
        rules: rules(),
        io: (work, both) => share.run(() => io.run(work, { signal: both }), { signal: both }),
        signal,
      }),
  }
}
