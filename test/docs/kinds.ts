/** Which test runs a code block of the documentation, and which blocks count as examples. */
import type { Block } from './blocks.ts'
import { allBlocks } from './blocks.ts'

/** What test/docs/examples runs. `answer` is the JSON with which the server answers the block before. */
export type ExampleKind = 'request' | 'answer' | 'json' | 'shell'

/** Tests that run the blocks of a page in these languages. */
export const RUN_BY: Readonly<Record<string, string>> = {
  'README.md sh terminal-1': 'test/stories/readme-tour.test.ts',
  'README.md sh terminal-2': 'test/stories/readme-tour.test.ts',
  'docs/README.md sh terminal-2': 'test/stories/readme-tour.test.ts',
  'README.md text': 'test/stories/demo.test.ts',
  'docs/chat.md json': 'test/docs/cli.test.ts',
  'docs/cli.md jsonl': 'test/docs/cli.test.ts',
  'docs/events.md jsonl': 'test/docs/events-page.test.ts',
  'docs/cli.md json': 'test/docs/cli.test.ts',
  'docs/cli.md jsonc': 'test/cli/snippet.test.ts',
  'docs/cli.md sh': 'test/stories/headless.test.ts',
  'docs/client.md ts': 'test/docs/programs.test.ts',
  'docs/events.md ts': 'test/docs/programs.test.ts',
  'docs/hooks.md python': 'test/docs/hooks-page.test.ts',
  'docs/install.md caddyfile': 'test/stories/proxies.test.ts',
  'docs/models.md json catalog': 'test/config/model-catalog.test.ts',
  'docs/operating.md sh backup': 'test/docs/code-blocks.test.ts',
  'docs/operating.md yaml': 'test/docs/code-blocks.test.ts',
  'docs/project-settings.md markdown': 'test/docs/code-blocks.test.ts',
  'docs/project-settings.md json settings': 'test/docs/code-blocks.test.ts',
  'docs/python.md python': 'sdk/python/tests/test_page.py',
  'docs/requests.md ts': 'test/docs/programs.test.ts',
  'docs/sdk.md ts': 'test/docs/programs.test.ts',
  'docs/security.md js': 'test/docs/security-page.test.ts',
}

export const nameOf = ({ page, language }: Block): string => `${page} ${language}`.trim()

export const isRunElsewhere = (block: Block): boolean => Object.hasOwn(RUN_BY, nameOf(block))

export function exampleKind(block: Block): ExampleKind | undefined {
  if (isRunElsewhere(block)) return undefined
  if (/^http(?: \d{3})?$/.test(block.language)) return 'request'
  if (/^json answer(?: later)?$/.test(block.language)) return 'answer'
  if (block.language === 'json') return 'json'
  return block.language === 'sh' ? 'shell' : undefined
}

const blocks = allBlocks()

/** The blocks of a page that test/docs/examples runs, in their order. */
export const examplesOf = (page: string): Block[] =>
  blocks.filter((block) => block.page === page && exampleKind(block) !== undefined)

/** Settings, as `.env` and units have them. */
export const isSettings = ({ language }: Block): boolean => language === 'env'

/** Commands that no test can run, such as those of Docker. Tests read them, and they do not count as examples. */
export const isUnrun = ({ language }: Block): boolean => ['sh unrun', 'dockerfile'].includes(language)

/** Output and drawings. */
export const isPicture = ({ language }: Block): boolean => ['text', 'mermaid'].includes(language)
