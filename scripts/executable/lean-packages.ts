/** Changes to packages that save time at each start. The build fails when the text that one of them replaces is gone. */
import { sep } from 'node:path'
import type { Plugin } from 'rolldown'

type Change = { readonly module: string; readonly replaces: readonly (readonly [text: string, by: string])[] }

const CHANGES: readonly Change[] = [
  {
    // Two modules of Node, with TLS under them, that only a server with certificates needs.
    module: 'fastify/lib/server.js',
    replaces: [
      ["const https = require('node:https')", ''],
      ["const http2 = require('node:http2')", ''],
      ['https.createServer(', "require('node:https').createServer("],
      ['http2.createSecureServer(', "require('node:http2').createSecureServer("],
      ['http2.createServer(', "require('node:http2').createServer("],
    ],
  },
  {
    // The versions of plugins do not change after the build. A build from sources checks them in every test.
    module: 'fastify/lib/plugin-utils.js',
    replaces: [
      ["const semver = require('semver')", ''],
      ['if (fastifyRc === true && semver.gt(this.version, semver.coerce(requiredVersion)) === true)', 'if (false)'],
      [
        'if (requiredVersion && semver.satisfies(this.version, requiredVersion, { includePrerelease: fastifyRc }) === false)',
        'if (false)',
      ],
    ],
  },
  {
    // The server has its own compilers, and these are half a megabyte.
    module: 'fastify/lib/schema-controller.js',
    replaces: [
      ["require('@fastify/ajv-compiler')", 'undefined'],
      ["require('@fastify/fast-json-stringify-compiler')", 'undefined'],
    ],
  },
  {
    // The schemas of one class share the set of the classes that they belong to: 200 bytes for each of 7,000 schemas.
    module: 'zod/v4/core/core.js',
    replaces: [
      ['    function _(def) {', '    let sharedTraits;\n    function _(def) {'],
      [
        '        const pp = globalThis',
        '        inst._zod.traits = sharedTraits ??= inst._zod.traits;\n        const pp = globalThis',
      ],
    ],
  },
  {
    // A schema keeps the one that it was made from only if that one has a description.
    module: 'zod/v4/core/util.js',
    replaces: [
      [
        'if (!def || params?.parent)',
        'if ((!def || params?.parent) && (inst._zod.parent || globalThis.__zod_globalRegistry.has(inst)))',
      ],
    ],
  },
  // Each mention of these global classes loads the fetch of Node, a second HTTP client.
  {
    module: 'openai/internal/utils/log.mjs',
    replaces: [['details.headers instanceof Headers', 'Symbol.iterator in details.headers']],
  },
  {
    module: 'openai/lib/EventStream.mjs',
    replaces: [
      ["typeof Headers === 'function' ?", 'false ?'],
      ["    'File',\n    'Headers',\n]) {", ']) {'],
    ],
  },
  {
    module: 'openai/auth/workload-identity-auth.mjs',
    replaces: [['const NATIVE_RESPONSE_PROTOTYPE = Response.prototype', 'const NATIVE_RESPONSE_PROTOTYPE = {}']],
  },
]

export function leanPackages(): Plugin {
  return {
    name: 'lean-packages',
    transform(code, id) {
      const path = id.replaceAll(sep, '/')
      const change = CHANGES.find(({ module }) => path.endsWith(`/node_modules/${module}`))
      return change && changed(code, change)
    },
  }
}

function changed(code: string, { module, replaces }: Change): string {
  let result = code
  for (const [text, by] of replaces) {
    if (!result.includes(text)) throw new Error(`${module} has changed: update scripts/executable/lean-packages.ts.`)
    result = result.replace(text, by)
  }
  return result
}
