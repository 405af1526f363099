#include "ui/graph/layout_problem.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <istream>
#include <sstream>

namespace cutaway::ui {
namespace {

constexpr const char* kHeader = "cutaway-layout 1";

std::string problemNumber(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", value);
    return text;
}

Error badLine(int line, const std::string& rule) {
    return invalidInput(rule, "layout record, line " + std::to_string(line));
}

bool sane(double value) { return std::isfinite(value) && std::abs(value) < 1e9; }

/// Hands each record after the header to `take(kind, fields, line)`, which answers an error message or "".
template <class Take>
Result<void> readRecords(std::istream& in, Take take) {
    std::string text;
    if (!std::getline(in, text) || text != kHeader) return badLine(1, std::string("expected \"") + kHeader + "\"");
    for (int line = 2; std::getline(in, text); ++line) {
        if (text == ".") return {};
        std::istringstream fields(text);
        std::string kind;
        fields >> kind;
        if (std::string wrong = take(kind, fields); !wrong.empty()) return badLine(line, wrong);
    }
    return invalidInput("ends before the closing \".\"", "layout record");
}

std::string takeProblem(LayoutProblem& problem, const std::string& kind, std::istringstream& fields) {
    const int clusterCount = static_cast<int>(problem.clusters.size());
    const int nodeCount = static_cast<int>(problem.nodes.size());
    if (kind == "o") {
        if (!(fields >> problem.longEdgeRanks) || problem.longEdgeRanks < 1) return "the rank limit must be 1 or more";
    } else if (kind == "c") {
        LayoutProblem::Cluster cluster;
        if (!(fields >> cluster.parent) || cluster.parent < -1 || cluster.parent >= clusterCount)
            return "a cluster's parent must come before it";
        problem.clusters.push_back(cluster);
    } else if (kind == "n") {
        LayoutProblem::Node node;
        if (!(fields >> node.width >> node.height >> node.cluster) || !sane(node.width) || !sane(node.height) ||
            node.width < 0 || node.height < 0)
            return "a node is: width height cluster";
        if (node.cluster < -1 || node.cluster >= clusterCount) return "no such cluster";
        problem.nodes.push_back(node);
    } else if (kind == "i") {
        int node = 0;
        if (!(fields >> node) || node < 0 || node >= nodeCount) return "no such node";
        problem.nodes[static_cast<size_t>(node)].inOrder = true;
    } else if (kind == "e") {
        LayoutProblem::Edge edge;
        if (!(fields >> edge.from >> edge.to >> edge.weight)) return "an edge is: from to weight";
        if (edge.from < 0 || edge.from >= nodeCount || edge.to < 0 || edge.to >= nodeCount) return "no such node";
        problem.edges.push_back(edge);
    } else {
        return "unknown record \"" + kind + "\"";
    }
    return {};
}

std::string takeAnswer(LayoutAnswer& answer, const std::string& kind, std::istringstream& fields) {
    if (kind == "s") {
        if (!(fields >> answer.width >> answer.height)) return "a size is: width height";
    } else if (kind == "m") {
        std::getline(fields >> std::ws, answer.note);
    } else if (kind == "n") {
        LayoutPoint point;
        if (!(fields >> point.x >> point.y) || !sane(point.x) || !sane(point.y)) return "a node is: x y";
        answer.centres.push_back(point);
    } else if (kind == "b") {
        LayoutBox box;
        if (!(fields >> box.x >> box.y >> box.width >> box.height)) return "a cluster is: x y width height";
        answer.clusters.push_back(box);
    } else if (kind == "e") {
        std::vector<LayoutPoint> route;
        for (LayoutPoint point; fields >> point.x >> point.y;) route.push_back(point);
        if (!route.empty() && route.size() % 3 != 1) return "an edge has 1 + 3n points";
        answer.routes.push_back(std::move(route));
    } else {
        return "unknown record \"" + kind + "\"";
    }
    return {};
}

}  // namespace

std::string writeProblem(const LayoutProblem& problem) {
    std::string text = std::string(kHeader) + "\no " + std::to_string(problem.longEdgeRanks) + "\n";
    for (const auto& cluster : problem.clusters) text += "c " + std::to_string(cluster.parent) + "\n";
    for (const auto& node : problem.nodes)
        text += "n " + problemNumber(node.width) + " " + problemNumber(node.height) + " " +
                std::to_string(node.cluster) + "\n";
    for (size_t i = 0; i < problem.nodes.size(); ++i)
        if (problem.nodes[i].inOrder) text += "i " + std::to_string(i) + "\n";
    for (const auto& edge : problem.edges)
        text +=
            "e " + std::to_string(edge.from) + " " + std::to_string(edge.to) + " " + std::to_string(edge.weight) + "\n";
    return text + ".\n";
}

std::string writeAnswer(const LayoutAnswer& answer) {
    std::string text =
        std::string(kHeader) + "\ns " + problemNumber(answer.width) + " " + problemNumber(answer.height) + "\n";
    if (!answer.note.empty()) text += "m " + answer.note + "\n";
    for (const auto& point : answer.centres)
        text += "n " + problemNumber(point.x) + " " + problemNumber(point.y) + "\n";
    for (const auto& box : answer.clusters)
        text += "b " + problemNumber(box.x) + " " + problemNumber(box.y) + " " + problemNumber(box.width) + " " +
                problemNumber(box.height) + "\n";
    for (const auto& route : answer.routes) {
        text += "e";
        for (const auto& point : route) text += " " + problemNumber(point.x) + " " + problemNumber(point.y);
        text += "\n";
    }
    return text + ".\n";
}

Result<LayoutProblem> readProblem(std::istream& in) {
    LayoutProblem problem;
    CT_TRY_VOID(readRecords(
        in, [&](const std::string& kind, std::istringstream& fields) { return takeProblem(problem, kind, fields); }));
    return problem;
}

Result<LayoutAnswer> readAnswer(std::istream& in, const LayoutProblem& problem) {
    LayoutAnswer answer;
    CT_TRY_VOID(readRecords(
        in, [&](const std::string& kind, std::istringstream& fields) { return takeAnswer(answer, kind, fields); }));
    if (answer.centres.size() != problem.nodes.size() || answer.routes.size() != problem.edges.size() ||
        answer.clusters.size() != problem.clusters.size())
        return invalidInput("the answer does not cover every node, edge and cluster", "layout answer");
    return answer;
}

std::vector<int> layoutRanks(const LayoutProblem& problem) {
    const size_t count = problem.nodes.size();
    std::vector<std::vector<int>> users(count);
    std::vector<int> inputs(count, 0), rank(count, 0);
    for (const auto& edge : problem.edges) {
        if (edge.from >= edge.to) continue;
        users[edge.from].push_back(edge.to);
        ++inputs[edge.to];
    }
    for (size_t node = 0; node < count; ++node)
        for (int user : users[node]) rank[user] = std::max(rank[user], rank[node] + 1);
    for (size_t node = 0; node < count; ++node) {
        if (inputs[node] > 0 || users[node].empty()) continue;
        int first = rank[users[node].front()];
        for (int user : users[node]) first = std::min(first, rank[user]);
        rank[node] = first - 1;
    }
    return rank;
}

}  // namespace cutaway::ui
