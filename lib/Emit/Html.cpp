// Writes a page that shows runs: the viewer of html/, and the runs as columns
// of numbers.
#include "Emitters.h"
#include "Picture.h"
#include "ppcc/Analysis/MemoryCurve.h"
#include "ppcc/Basic/Diagnostics/Pictures.h"
#include "ppcc/IR/Place.h"
#include "ppcc/Support/Embedded.h"

#include "llvm/Support/Base64.h"

using namespace ppcc;

namespace ppcc {
/// The parts of each page: the files of html/.
ArrayRef<EmbeddedFile> viewerFiles();
} // namespace ppcc

namespace {

/// Causes that are no row of the page, as viewer.js has them.
constexpr uint32_t noCause = 0xFFFFFFFF, hiddenCause = 0xFFFFFFFE;

/// When the nodes of the boxes of a page run. Each order of nodes is there
/// once, however many boxes have it.
class NodeTable {
public:
  static constexpr uint32_t noOrder = 0xFFFFFFFF; ///< As viewer.js has it.

  /// Stops at the box with which it has more than `most` nodes.
  NodeTable(const Picture &picture, size_t most) {
    if (picture.lanes().empty())
      return;
    for (RankId rank : picture.ranks)
      picture.forEachAnyBox(rank, [&](const Box &box) {
        if (size() <= most)
          orderOfBox.push_back(find(picture, box));
      });
  }

  bool empty() const { return orderOfBox.empty(); }
  size_t size() const { return starts.size(); }

  std::vector<uint32_t> orderOfBox; ///< Of all shown ranks, one after another.
  std::vector<uint32_t> begins{0};  ///< Of each order, its first node; the end.
  /// Of each node.
  std::vector<uint32_t> members, names, layers;
  std::vector<uint8_t> kinds, lanes;
  std::vector<double> starts, ends; ///< In units, from the begin of the box.

private:
  uint32_t find(const Picture &picture, const Box &box) {
    const NodeOrder *order = picture.orderOf(box);
    if (!order)
      return noOrder;
    if (order->number >= pageNumbers.size())
      pageNumbers.resize(order->number + 1, noOrder);
    uint32_t &number = pageNumbers[order->number];
    if (number == noOrder) {
      number = static_cast<uint32_t>(begins.size() - 1);
      add(picture, box, *order);
    }
    return number;
  }

  void add(const Picture &picture, const Box &box, const NodeOrder &order) {
    for (const NodeOrder::Place &place : order.places) {
      if (place.start == place.end)
        continue;
      const GraphNode &node = picture.nodeOf(
          ActionId(box.rows.from.value + place.member), place.node);
      members.push_back(place.member);
      names.push_back(node.name);
      layers.push_back(node.layer);
      kinds.push_back(static_cast<uint8_t>(node.part.value));
      lanes.push_back(static_cast<uint8_t>(node.lane));
      starts.push_back(double(place.start) / cost::unit);
      ends.push_back(double(place.end) / cost::unit);
    }
    begins.push_back(static_cast<uint32_t>(size()));
  }

  std::vector<uint32_t> pageNumbers; ///< By NodeOrder::number.
};

/// A run of a page.
struct PagePicture {
  PagePicture(Picture &&picture)
      : picture(std::move(picture)), nodes(this->picture, maxPageRows) {}

  Picture picture;
  NodeTable nodes;
};

/// Writes one run as JSON; viewer.js reads it.
class RunWriter {
public:
  RunWriter(const PagePicture &page, SourceManager &sources, Writer &writer)
      : picture(page.picture), nodeTable(page.nodes), program(picture.program),
        times(picture.times), sources(sources), writer(writer) {
    rowStarts.push_back(0);
    for (RankId rank : picture.ranks)
      rowStarts.push_back(rowStarts.back() +
                          static_cast<uint32_t>(program.size(rank)));
    for (Time end : times.ends)
      tick = std::gcd(tick, end);
    for (Time start : times.starts)
      tick = std::gcd(tick, start);
    tick = std::max<Time>(tick, 1);
    isWide = times.makespan / tick > UINT32_MAX;
  }

  void write() {
    writer.object([&](JsonFields &fields) { write(fields); }, ",\n");
  }

private:
  void write(JsonFields &fields) {
    fields("title", picture.title());
    fields("tick", tick);
    fields("wide", isWide);
    if (picture.from != 0 || picture.to != times.makespan) {
      fields.key("span");
      writer.put('[', cost::format(picture.from), ',', cost::format(picture.to),
                 ']');
    }
    fields.values("ranks", picture.ranks, ",");
    fields.values("rowStarts", rowStarts, ",");
    fields.list(
        "kinds", program.kinds().rows(),
        [&](const KindInfo &info) { kind(info); }, ",");
    fields.values("phases", program.phases(), ",");
    fields.values("lanes", program.kinds().lanes(), ",");
    fields.list(
        "pipes", program.pipes(), [&](const Pipe &info) { pipe(info); }, ",");
    std::vector<std::string> chunks;
    for (uint32_t chunk = 0;
         picture.maxChunks > 1 && chunk != picture.maxChunks; ++chunk)
      chunks.push_back(picture.chunkWords(chunk));
    fields.values("chunks", chunks, ",");
    fields.key("columns");
    writer.object([&](JsonFields &columns) { columnsOf(columns); }, ",\n",
                  "{\n");
    if (!nodeTable.empty()) {
      fields.key("nodes");
      writer.object([&](JsonFields &ofNodes) { nodes(ofNodes); }, ",\n");
    }
    fields.key("memory");
    memory();
    files(fields);
  }

  void kind(const KindInfo &info) {
    KindId id = *program.kinds().find(info.letters);
    writer.object([&](JsonFields &fields) {
      fields("letters", info.letters);
      fields("label", picture.lookOf(id).label);
      fields("hatch", int(picture.lookOf(id).hatch));
      fields("words", kindWords(program.kinds(), info));
      fields("class", info.occupiesRank() ? "compute"
                      : info.isDeclared() ? "beside"
                                          : kindClassName(info.kindClass));
      fields("moves", (info.defines & slot::moving) != 0);
      fields("lane", info.lane);
      std::vector<std::string> colors;
      for (uint32_t chunk = 0; chunk != picture.maxChunks; ++chunk)
        colors.push_back(picture.fill(id, chunk).hex());
      fields.values("colors", colors, ",");
    });
  }

  void pipe(const Pipe &pipe) {
    PipeId id(&pipe - program.pipes().data());
    writer.object([&](JsonFields &fields) {
      fields("name", pipe.name);
      std::vector<uint32_t> chunks;
      for (StageId stage : pipe.stages())
        chunks.push_back(picture.chunk(id, stage));
      fields.values("chunks", chunks, ",");
    });
  }

  /// Numbers as the bytes of a little-endian array of T, in base 64.
  /// `each(put)` calls `put` with one number after another.
  template <class T, class Each> void array(Each each) {
    // Full bytes of base 64: a multiple of three numbers.
    constexpr size_t batch = 3 * 4096;
    std::vector<T> values;
    values.reserve(batch);
    auto flush = [&] {
      writer.put(llvm::encodeBase64(
          ArrayRef(reinterpret_cast<const char *>(values.data()),
                   values.size() * sizeof(T))));
      values.clear();
    };
    static_assert(std::endian::native == std::endian::little);
    writer.put('"');
    each([&](T value) {
      values.push_back(value);
      if (values.size() == batch)
        flush();
    });
    flush();
    writer.put('"');
  }

  /// An array with `value(row)` for each row of the shown ranks.
  template <class T, class Value>
  void column(JsonFields &fields, StringRef name, Value value) {
    fields.key(name);
    array<T>([&](auto put) {
      for (RankId rank : picture.ranks)
        for (ActionId row : program.rows(rank))
          put(static_cast<T>(value(row)));
    });
  }

  template <class T, class Tag>
  void column(JsonFields &fields, StringRef name, Id<Tag> Action::*id) {
    column<T>(fields, name,
              [=, this](ActionId row) { return (program[row].*id).value; });
  }

  void columnsOf(JsonFields &fields) {
    auto timeColumn = [&](StringRef name, const std::vector<Time> &values) {
      auto ticks = [&](ActionId row) { return values[row.value] / tick; };
      isWide ? column<double>(fields, name, ticks)
             : column<uint32_t>(fields, name, ticks);
    };
    timeColumn("start", times.starts);
    timeColumn("end", times.ends);
    column<uint32_t>(fields, "cause",
                     [&](ActionId row) { return pageCause(row); });
    column<uint8_t>(fields, "kind", &Action::kind);
    column<uint8_t>(fields, "pipe", &Action::pipe);
    column<uint16_t>(fields, "stage", &Action::stage);
    column<uint16_t>(fields, "peer", &Action::peer);
    column<uint32_t>(fields, "microbatch",
                     [&](ActionId row) { return program[row].microbatch; });
    column<uint16_t>(fields, "phase", &Action::phase);
    column<uint8_t>(fields, "joined",
                    [&](ActionId row) { return program.joined(row); });
    column<uint32_t>(fields, "site", &Action::site);
    fields.key("critical");
    array<uint32_t>([&](auto put) {
      for (ActionId row : criticalPath(times))
        if (uint32_t at = pageRow(row.value); at != hiddenCause)
          put(at);
    });
    fields.key("sites");
    array<uint32_t>([&](auto put) {
      for (const Site &site : program.sites()) {
        put(site.file);
        put(site.line);
        put(site.column);
        put(site.caller.value);
      }
    });
  }

  uint32_t pageCause(ActionId row) const {
    uint32_t cause = times.causes[row.value];
    return cause == Simulation::none ? noCause : pageRow(cause);
  }
  /// Where the page has a row.
  uint32_t pageRow(uint32_t row) const {
    // Most pages have all ranks.
    if (picture.ranks.size() == program.ranksBegun())
      return row;
    RankId rank = program.rankOf(ActionId(row));
    auto found =
        std::lower_bound(picture.ranks.begin(), picture.ranks.end(), rank);
    if (found == picture.ranks.end() || *found != rank)
      return hiddenCause;
    return rowStarts[found - picture.ranks.begin()] + row -
           program.begin(rank).value;
  }

  /// The order of nodes of each row that begins a box, and the orders.
  void nodes(JsonFields &fields) {
    fields.values("lanes", program.nodes().lanes, ",");
    fields.values("names", program.nodes().names, ",");
    fields.values("labels", picture.nodeLabels, ",");
    fields.key("order");
    array<uint32_t>([&](auto put) { orderColumn(put); });
    auto values = [&]<class T>(StringRef name, const std::vector<T> &values) {
      fields.key(name);
      array<T>([&](auto put) { llvm::for_each(values, put); });
    };
    values("begin", nodeTable.begins);
    values("member", nodeTable.members);
    values("kind", nodeTable.kinds);
    values("lane", nodeTable.lanes);
    values("name", nodeTable.names);
    values("layer", nodeTable.layers);
    values("start", nodeTable.starts);
    values("end", nodeTable.ends);
  }

  template <class Put> void orderColumn(Put put) {
    const uint32_t *order = nodeTable.orderOfBox.data();
    for (RankId rank : picture.ranks) {
      ActionId next = program.begin(rank);
      auto skipTo = [&](ActionId row) {
        for (; next != row; ++next.value)
          put(NodeTable::noOrder);
      };
      picture.forEachAnyBox(rank, [&](const Box &box) {
        skipTo(box.rows.from);
        put(*order++);
        ++next.value;
      });
      skipTo(program.end(rank));
    }
  }

  /// For each rank the times at which what it holds changes, in units, and what
  /// it holds from then on.
  void memory() {
    MemoryCurve curve(program, times);
    writer.list(picture.ranks, [&](RankId rank) {
      std::vector<double> at, held;
      curve.walk(rank, [&](const MemoryStep &step) {
        double time = double(step.at) / cost::unit;
        if (at.empty() || at.back() != time) {
          at.push_back(time);
          held.push_back(0);
        }
        held.back() = double(step.memory) / amount::unit;
        return true;
      });
      writer.put('\n');
      writer.object([&](JsonFields &fields) {
        fields.key("at");
        array<double>([&](auto put) { llvm::for_each(at, put); });
        fields.key("held");
        array<double>([&](auto put) { llvm::for_each(held, put); });
        if (auto limit = curve.model().limitOf(rank))
          fields.raw("limit", amount::format(*limit));
      });
    });
  }

  /// The names of the files, and the lines of text that actions come from.
  void files(JsonFields &fields) {
    fields.list(
        "files", program.files(),
        [&](const SiteFile &file) { writer.json(file.name); }, ",");
    std::set<std::pair<uint32_t, uint32_t>> seen;
    StringRef before = "[";
    fields.key("source");
    writer.put('[');
    for (uint32_t i = 1; i < program.sites().size(); ++i) {
      const Site &site = program.sites()[i];
      // The line of a cell is a whole rank.
      if (program.files()[site.file].own ||
          !seen.insert({site.file, site.line}).second)
        continue;
      Place place = placeOf(program, SiteId(i), sources);
      if (!place.range.valid())
        continue;
      writer.put(std::exchange(before, ",["), site.file, ',', site.line, ',');
      writer.json(sources.lineText(place.range.begin).trim().take_front(200));
      writer.put(']');
    }
    writer.put(']');
  }

  const Picture &picture;
  const NodeTable &nodeTable;
  const Program &program;
  const Simulation &times;
  SourceManager &sources;
  Writer &writer;
  std::vector<uint32_t> rowStarts; ///< Of the shown ranks, on the page.
  Time tick = 0;                   ///< Divides all times.
  bool isWide = false;             ///< Ticks do not fit 32 bits.
};

} // namespace

static StringRef viewerFile(StringRef name) {
  return findBy(viewerFiles(), name, &EmbeddedFile::name)->text;
}

static void writePage(const std::deque<PagePicture> &pages,
                      SourceManager &sources, raw_ostream &out) {
  Writer writer(out, /*inMarkup=*/true);
  std::string title = escapedMarkup(pages.front().picture.title());
  // The policy keeps whatever the names are from fetching anything.
  writer.put("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\""
             "default-src 'none'; script-src 'unsafe-inline'; style-src "
             "'unsafe-inline'\">\n<title>",
             title, "</title>\n<style>\n", viewerFile("viewer.css"),
             "</style>\n", viewerFile("viewer.html"));
  for (const PagePicture &page : pages) {
    writer.put("<script type=\"application/json\">");
    RunWriter(page, sources, writer).write();
    writer.put("</script>\n");
  }
  writer.put("<script>\n", viewerFile("viewer.js"), "</script>\n</html>\n");
}

void ppcc::emitPage(ArrayRef<PageRun> runs, raw_ostream &out,
                    EmitContext &context) {
  std::deque<PagePicture> pages;
  size_t rows = 0, nodes = 0;
  for (const PageRun &run : runs) {
    EmitContext ofRun = context;
    ofRun.options.transport = run.transport;
    auto picture = Picture::make(run.program, ofRun);
    if (!picture)
      return;
    for (RankId rank : picture->ranks)
      rows += run.program.size(rank);
    if (rows > maxPageRows)
      return context.diags.refuse<diag::PictureTooLarge>(
          Place(run.program.name()), rows, "actions and messages", maxPageRows,
          "a page");
    nodes += pages.emplace_back(std::move(*picture)).nodes.size();
    if (nodes > maxPageRows)
      return context.diags.refuse<diag::PictureTooLarge>(
          Place(run.program.name()), nodes, "nodes", maxPageRows, "a page");
  }
  writePage(pages, context.sources, out);
}

void ppcc::emitHtml(const Program &program, raw_ostream &out,
                    EmitContext &context) {
  return emitPage(PageRun{program, context.options.transport}, out, context);
}
