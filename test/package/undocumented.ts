import { join, posix, relative } from 'node:path';
import {
  isClassDeclaration,
  isConditionalTypeNode,
  isInterfaceDeclaration,
  isTypeLiteralNode,
} from 'typescript/unstable/ast/is';
import { type Node, SyntaxKind } from 'typescript/unstable/ast';
import { API, type Checker, type Project, type Symbol as Sym, type Type } from 'typescript/unstable/sync';
import { manifest, root } from './consumer.ts';

/** One public symbol, or one member of a public type, by its declaration in our sources. */
export interface Documented {
  /** The source file, from the root of the project: `src/spillway.ts`. */
  readonly file: string;
  /** The line of the declaration, from 1. */
  readonly line: number;
  /** `symbol` or `symbol.member`. */
  readonly name: string;
  /** What an editor shows for it, tags apart; empty where nothing is said. */
  readonly docstring: string;
}

/** The sources of the entries of `package.json` that are modules. */
const sources = (): string[] =>
  Object.values(manifest.exports).flatMap((to) =>
    typeof to === 'string' ? [] : [join(root, to.types.replace('./dist/', 'src/').replace('.d.ts', '.ts'))],
  );

/** Collects each declaration once, under the first public name that leads to it. */
class Collection {
  readonly found: Map<string, Documented> = new Map();
  private readonly project: Project;
  private readonly checker: Checker;

  constructor(project: Project) {
    this.project = project;
    this.checker = project.checker;
  }

  /** A symbol that an entry exports, and all that a user can name through its declaration. */
  addExport(exported: Sym): void {
    const symbol = this.isAlias(exported) ? this.checker.getAliasedSymbol(exported) : exported;
    if (!this.add(symbol, exported.name)) return;
    for (const node of this.declarations(symbol)) this.addInlineMembers(node, exported.name);
    if (this.declarations(symbol).some(isType)) {
      this.addProperties(this.checker.getDeclaredTypeOfSymbol(symbol), exported.name);
    }
  }

  /** The properties of a type, and of each part of a union, inherited ones too. */
  private addProperties(type: Type, owner: string): void {
    if (type.isUnionType()) for (const part of type.getTypes() ?? []) this.addProperties(part, owner);
    else if (type.isObjectType() || type.isIntersectionType()) {
      for (const property of this.checker.getPropertiesOfType(type)) this.add(property, `${owner}.${property.name}`);
    }
  }

  /** The members of types that are written in place: an option of an option, an argument of a function. */
  private addInlineMembers(node: Node, owner: string): void {
    node.forEachChild((child) => {
      // What a type is compared with is not what it offers.
      if (isConditionalTypeNode(node) && child === node.extendsType) return;
      if (isTypeLiteralNode(child)) {
        for (const member of child.members) {
          const { name } = member as { name?: Node };
          const symbol = name === undefined ? undefined : this.checker.getSymbolAtLocation(name);
          if (symbol !== undefined) this.add(symbol, `${owner}.${symbol.name}`);
        }
      }
      // What a body or a value holds is nobody's but its own.
      if (!isBody(child)) this.addInlineMembers(child, owner);
    });
  }

  /** Says whether the declaration is one of ours that was not there yet. */
  private add(symbol: Sym, name: string): boolean {
    const [first] = this.declarations(symbol);
    if (first === undefined || isHidden(first)) return false;
    const file = this.fileOf(first);
    const { line } = first.getSourceFile().getLineAndCharacterOfPosition(first.getStart());
    const key = `${file}:${first.getStart()}`;
    if (!file.startsWith('src/') || this.found.has(key)) return false;
    this.found.set(key, { file, line: line + 1, name, docstring: symbol.getDocumentationComment(this.checker).trim() });
    return true;
  }

  private declarations(symbol: Sym): Node[] {
    return symbol.declarations.flatMap((handle) => handle.resolve(this.project) ?? []);
  }

  private fileOf(node: Node): string {
    return relative(root, node.getSourceFile().fileName).replaceAll('\\', posix.sep);
  }

  private isAlias(symbol: Sym): boolean {
    return this.declarations(symbol).some(({ kind }) => kind === SyntaxKind.ExportSpecifier);
  }
}

const isType = (node: Node): boolean =>
  isInterfaceDeclaration(node) || isClassDeclaration(node) || node.kind === SyntaxKind.TypeAliasDeclaration;
const isBody = ({ kind }: Node): boolean => kind === SyntaxKind.Block || kind === SyntaxKind.ObjectLiteralExpression;
const modifiersOf = (node: Node): readonly Node[] => (node as { modifiers?: readonly Node[] }).modifiers ?? [];
const isHidden = (node: Node): boolean =>
  modifiersOf(node).some(({ kind }) => kind === SyntaxKind.PrivateKeyword) ||
  (node as { name?: Node }).name?.kind === SyntaxKind.PrivateIdentifier;

/** Every public symbol and every member of every public type, whether documented or not. */
export function publicDeclarations(): readonly Documented[] {
  const api = new API({ cwd: root });
  try {
    const config = join(root, 'tsconfig.json');
    const project = api.updateSnapshot({ openProjects: [config] }).getProject(config);
    if (project === undefined) throw new Error(`no project for ${config}`);
    const collection = new Collection(project);
    for (const path of sources()) {
      const file = project.program.getSourceFile(path);
      const module = file && project.checker.getSymbolAtLocation(file);
      if (module === undefined) throw new Error(`${path} is not a module of the project`);
      for (const exported of project.checker.getExportsOfModule(module)) collection.addExport(exported);
    }
    return [...collection.found.values()];
  } finally {
    api.close();
  }
}
